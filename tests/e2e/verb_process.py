# SPDX-License-Identifier: Apache-2.0
"""A process that loads libwelkin.so once and runs one verb after the other, as the launcher runs one. Loading torch's libraries takes eighty
times as long as `welkin data inspect` of a small file, so that thousands of calls are made this way.

usage: verb_process.py TORCH_PACKAGE WELKIN_LIBRARY    what the class VerbProcess starts
"""
import ctypes
import json
import os
import pathlib
import select
import subprocess
import sys
import tempfile


class VerbProcess:
    """Runs verbs in a child, which is started anew after a death. Not for two threads at once."""

    def __init__(self, binary):
        venv = pathlib.Path(os.environ["WELKIN_SOURCE_DIR"]) / ".venv"
        package = pathlib.Path(os.environ.get("WELKIN_TORCH") or next(venv.glob("lib/python3*/site-packages/torch")))
        self.words = [sys.executable, __file__, str(package), str(pathlib.Path(binary).parent / "libwelkin.so")]
        self.child = None

    def processor_s(self):
        """Processor time of the child so far, and of the processes that it started and that have ended."""
        times = pathlib.Path(f"/proc/{self.child.pid}/stat").read_text().rpartition(")")[2].split()[11:15]
        return sum(map(int, times)) / os.sysconf("SC_CLK_TCK")

    def run(self, *words, timeout, cwd="/"):
        """As subprocess.run: a negative code is the signal that ended the child; TimeoutExpired. `processor_s` of what it gives is the verb's."""
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            if self.child is None:
                self.start()
            files = [f"/proc/{os.getpid()}/fd/{file.fileno()}" for file in (out, err)]
            before = self.processor_s()
            self.child.stdin.write(json.dumps([str(cwd), [str(word) for word in words], *files]).encode() + b"\n")
            self.child.stdin.flush()
            if not select.select([self.child.stdout], [], [], timeout)[0]:
                self.close()
                raise subprocess.TimeoutExpired(words, timeout)
            answer = self.child.stdout.readline()
            used = self.processor_s() - before if answer else 0.0
            code = int(answer) if answer else self.child.wait()
            if not answer:
                self.close()
            texts = []
            for file in (out, err):
                file.seek(0)
                texts.append(file.read().decode(errors="replace"))
            done = subprocess.CompletedProcess(words, code, *texts)
            done.processor_s = used
            return done

    def start(self):
        # Only what welkin writes is to be told apart: the answers have a descriptor of their own.
        self.child = subprocess.Popen(self.words, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                      env={**os.environ, "GOMP_SPINCOUNT": "0", "OMP_NUM_THREADS": "1"})

    def close(self):
        if self.child:
            self.child.kill()
            self.child.wait()
            self.child.stdin.close()
            self.child.stdout.close()
        self.child = None


def serve(package, library):
    answers = os.fdopen(os.dup(1), "w")
    for name in ("libc10.so", "libtorch_cpu.so"):
        ctypes.CDLL(f"{package}/lib/{name}", mode=ctypes.RTLD_GLOBAL)
    welkin_main = ctypes.CDLL(library, mode=ctypes.RTLD_GLOBAL).welkin_main
    for line in sys.stdin:
        folder, words, *files = json.loads(line)
        os.chdir(folder)
        for descriptor, name in enumerate(files, start=1):
            file = os.open(name, os.O_WRONLY | os.O_APPEND)
            os.dup2(file, descriptor)
            os.close(file)
        arguments = (ctypes.c_char_p * (len(words) + 2))(b"welkin", *(os.fsencode(word) for word in words), None)
        print(welkin_main(len(words) + 1, arguments), file=answers, flush=True)


if __name__ == "__main__":
    serve(*sys.argv[1:])
