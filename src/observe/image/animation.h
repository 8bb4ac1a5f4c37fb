// SPDX-License-Identifier: Apache-2.0
// Animations: a sequence of pictures as one file. APNG is written here, GIF and MP4 by the program ffmpeg, if installed.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace welkin::observe::image {

enum class AnimationFormat { Apng, Gif, Mp4 };

// Parses "apng", "gif", "mp4". ConfigError for other names, and for formats that need an absent ffmpeg, before any other work.
AnimationFormat parse_animation_format(std::string_view name);
// The file name's ending: ".apng" and so on.
std::string extension_of(AnimationFormat format);

// `frames` are PNG files of one size (encode_png), each shown for `seconds`, in an endless loop.
std::string encode_apng(std::span<const std::string> frames, double seconds);

// Writes atomically. DataError for a full disk and for errors of ffmpeg.
void write_animation(const std::filesystem::path& path, AnimationFormat format, std::span<const std::string> frames,
                     double seconds);

}  // namespace welkin::observe::image
