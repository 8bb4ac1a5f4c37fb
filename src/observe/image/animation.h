// SPDX-License-Identifier: Apache-2.0
// Pictures one after the other as one file: APNG here, GIF and MP4 through the program ffmpeg where it is installed.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace welkin::observe::image {

enum class AnimationFormat { Apng, Gif, Mp4 };

// "apng", "gif", "mp4". ConfigError for anything else, and for what needs ffmpeg where there is none, before anything is made.
AnimationFormat parse_animation_format(std::string_view name);
// ".apng" and so on.
std::string extension_of(AnimationFormat format);

// `frames` are PNG files of one size (encode_png), each shown for `seconds`, over and over.
std::string encode_apng(std::span<const std::string> frames, double seconds);

// Atomically. Throws DataError: a full disk, or what ffmpeg says.
void write_animation(const std::filesystem::path& path, AnimationFormat format, std::span<const std::string> frames,
                     double seconds);

}  // namespace welkin::observe::image
