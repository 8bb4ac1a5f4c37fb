# SPDX-License-Identifier: Apache-2.0
"""python3 -m welkin"""
from welkin import main

if __name__ == "__main__":
    main()
