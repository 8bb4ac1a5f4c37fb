# SPDX-License-Identifier: Apache-2.0
"""The manylinux level of an installed folder: the oldest C and C++ libraries that its programs and libraries load with (PEP 600).

usage: level.py PREFIX
Prints manylinux_2_N_x86_64. libwelkin_ingest.so does not count: it is opened by `data ingest` alone, on systems that have its libraries.
"""
import pathlib
import platform
import re
import subprocess
import sys

# glibc's minor version by the newest symbols of libstdc++ that systems with it have, as auditwheel's policies.
GLIBCXX = {24: 24, 25: 28, 28: 31, 29: 34, 30: 35, 33: 39}


def newest(files, name):
    text = "".join(subprocess.run(["readelf", "-VW", str(file)], check=True, capture_output=True, text=True).stdout for file in files)
    return max(map(int, re.findall(rf"\b{re.escape(name)}\.(\d+)\b", text)), default=0)


def main(arguments):
    prefix = pathlib.Path(arguments[0])
    files = [prefix / "bin/welkin", prefix / "libexec/welkin-check-files", *prefix.glob("lib/*.so")]
    files = [file for file in files if file.name != "libwelkin_ingest.so"]
    wanted = newest(files, "GLIBCXX_3.4")
    by_cxx = next((glibc for symbols, glibc in sorted(GLIBCXX.items()) if symbols >= wanted), None)
    if by_cxx is None:
        sys.exit(f"level.py: no manylinux level has this libstdc++: GLIBCXX_3.4.{wanted}. Build with an older compiler, or add its row.")
    print(f"manylinux_2_{max(newest(files, 'GLIBC_2'), by_cxx)}_{platform.machine()}")


if __name__ == "__main__":
    main(sys.argv[1:])
