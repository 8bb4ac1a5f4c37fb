#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`welkin completion bash|zsh`: what the shells offer for a line, in bash by its own rules for words and behind a real TAB."""
import os
import pathlib
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

BINARY = os.environ["WELKIN_BINARY"]
ZSH = shutil.which("zsh")


def script(shell):
    done = subprocess.run([BINARY, "completion", shell], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout


def plain(shown):
    """Without bells, and without what moves the cursor or sets colours."""
    return re.sub(r"[\x07\b]|\x1b\[[0-9;?]*[A-Za-z]", "", shown)


class Completion(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.root = pathlib.Path(tempfile.mkdtemp())
        cls.addClassCleanup(shutil.rmtree, cls.root)
        (cls.root / "welkin.bash").write_text(script("bash"))
        (cls.root / "_welkin").write_text(script("zsh"))
        (cls.root / "presets.yaml").write_text("# two presets\nbase: &base\n  lr: 1\nshort:\n  <<: *base\n")
        (cls.root / "prelude").mkdir()

    def in_terminal(self, command, typed, expected):
        """What an interactive shell shows once `typed` was typed, at most until `expected` appears."""
        child, terminal = pty.fork()
        if child == 0:
            os.chdir(self.root)
            os.execvpe(command[0], command, {**os.environ, "TERM": "dumb", "PS1": "> ", "HISTFILE": "/dev/null"})
        shown, sent, until = "", False, time.monotonic() + 20
        try:
            while time.monotonic() < until and not (sent and expected in plain(shown)):
                if select.select([terminal], [], [], 0.2)[0]:
                    shown += os.read(terminal, 4096).decode(errors="replace")
                elif not sent:  # it waits for a line
                    os.write(terminal, typed.encode())
                    sent, shown = True, ""
        finally:
            os.kill(child, signal.SIGKILL)
            os.close(terminal)
            os.waitpid(child, 0)
        return plain(shown)


class Bash(Completion):
    def offers(self, line, word_breaks=" =:"):
        """COMPREPLY for a line with the cursor at its end, its words parted as bash does: '=' is a word of its own, if it breaks words."""
        parted = r"=|[^=]+" if "=" in word_breaks else r".+"
        words = [part for word in line.split(" ") for part in (re.findall(parted, word) or [""])]
        text = (f"source ./welkin.bash; COMP_WORDBREAKS='{word_breaks}'; "
                'COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _welkin; printf "%s\\n" "${COMPREPLY[@]}"')
        done = subprocess.run(["bash", "-c", text, "bash", *words], capture_output=True, text=True, timeout=60, cwd=self.root)
        self.assertEqual((done.returncode, done.stderr), (0, ""), line)
        return done.stdout.split()

    def test_verbs_of_one_and_two_words(self):
        self.assertEqual(self.offers("welkin tr"), ["train"])
        self.assertLessEqual({"train", "data", "ckpt", "bench", "launch", "completion"}, set(self.offers("welkin ")))
        self.assertNotIn("data simulate", self.offers("welkin "))
        self.assertEqual(self.offers("welkin data s"), ["simulate", "stats"])
        self.assertEqual(self.offers("welkin data simulate "), ["nbody", "weather"])
        self.assertEqual(self.offers("welkin completion "), ["bash", "zsh", "man"])

    def test_verbs_behind_options(self):
        self.assertEqual(self.offers("welkin --plugin libmine.so ev"), ["evaluate"])
        self.assertEqual(self.offers("welkin launch -n 4 -- tr"), ["train"])
        self.assertEqual(self.offers("welkin launch -n 4 -- train --resu"), ["--resume", "--resume_optimizer"])
        self.assertEqual(self.offers("welkin launch -n 4 train --resu"), ["--resume", "--resume_optimizer"])

    def test_flags_of_each_verb(self):
        self.assertEqual(self.offers("welkin train --num_e"), ["--num_epochs"])
        self.assertEqual(self.offers("welkin train --no-cuda"), ["--no-cuda_graph"])
        self.assertEqual(self.offers("welkin ckpt diff --a"), ["--all"])
        self.assertEqual(self.offers("welkin ckpt diff --num_e"), [])
        self.assertEqual(self.offers("welkin data simulate weather --gr"), ["--grid"])
        self.assertEqual(self.offers("welkin data simulate nbody --gr"), [])
        self.assertEqual(self.offers("welkin bench --tiles --se"), ["--seconds"])
        self.assertEqual(self.offers("welkin launch --no"), ["--node_rank", "--no-prefix"])
        everything = subprocess.run([BINARY, "train", "--help=all"], capture_output=True, text=True, timeout=60).stdout
        self.assertEqual(set(self.offers("welkin train --")), set(re.findall(r"^  (--\w+)", everything, re.MULTILINE)))

    def test_values_of_flags(self):
        self.assertEqual(self.offers("welkin train --amp_mode "), ["none", "fp16", "bf16"])
        self.assertEqual(self.offers("welkin train --amp_mode=b"), ["bf16"])
        self.assertEqual(self.offers("welkin train --dry_run=y"), ["yaml"])
        self.assertEqual(self.offers("welkin train --dry_run --resu"), ["--resume", "--resume_optimizer"])
        self.assertEqual(self.offers("welkin train --num_epochs "), [])
        self.assertEqual(self.offers("welkin verify --amp_mode "), ["fp32", "bf16", "fp16"])
        self.assertEqual(self.offers("welkin ckpt export --format s"), ["safetensors"])
        self.assertEqual(self.offers("welkin data simulate --layout sc23 --layout "), ["sc21", "sc22", "dl4sci25", "sc23"])
        self.assertEqual(self.offers("welkin train --amp_mode=b", " "), ["--amp_mode=bf16"])

    def test_keys_of_set(self):
        self.assertEqual(self.offers("welkin train --set global_b"), ["global_batch_size="])
        self.assertEqual(self.offers("welkin train --set dataset=n"), ["nbody"])
        self.assertEqual(self.offers("welkin train --set lr_schedule=cos"), ["cosine"])
        self.assertEqual(self.offers("welkin train --set pin_memory="), ["true", "false"])
        self.assertEqual(self.offers("welkin train --set=pin_memory=f"), ["false"])
        self.assertEqual(self.offers("welkin train --set train_path=pre"), ["prelude", "presets.yaml"])

    def test_files_and_presets(self):
        for line in ("train --yaml_config pre", "train --yaml_config=pre", "evaluate pre", "data inspect pre", "report --json pre", "--plugin pre"):
            self.assertEqual(sorted(self.offers(f"welkin {line}")), ["prelude", "presets.yaml"], line)
        self.assertEqual(self.offers("welkin train --yaml_config presets.yaml --config "), ["base", "short"])
        self.assertEqual(self.offers("welkin train --yaml_config=presets.yaml --config=s"), ["short"])
        self.assertEqual(self.offers("welkin train --yaml_config absent.yaml --config "), [])

    def test_a_tab_completes_and_starts_no_program(self):
        (self.root / "rc").write_text("source ./welkin.bash\nwelkin() { echo STARTED; }\nbind 'set show-all-if-ambiguous on'\n")
        for typed, expected in (("welkin tra\t", "train "), ("welkin train --amp_mode=bf\t", "--amp_mode=bf16 "),
                                ("welkin train --set lr_schedule=cos\t", "lr_schedule=cosine "), ("welkin train --set global_ba\t", "batch_size=")):
            shown = self.in_terminal(["bash", "--noprofile", "--rcfile", "rc", "-i"], typed, expected)
            self.assertIn(expected, shown)
            self.assertNotIn("STARTED", shown)


@unittest.skipUnless(ZSH, "zsh is not installed")
class Zsh(Completion):
    def test_syntax(self):
        done = subprocess.run([ZSH, "-n", "_welkin"], capture_output=True, text=True, timeout=60, cwd=self.root)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_a_tab_completes(self):
        (self.root / ".zshrc").write_text("unset zle_bracketed_paste\nautoload -Uz compinit && compinit -u -D\nsource ./_welkin\nPS1='> '\n")
        command = ["env", f"ZDOTDIR={self.root}", ZSH, "-d", "-i"]
        for typed, expected in (("welkin tra\t", "train "), ("welkin train --amp_mode=bf\t", "--amp_mode=bf16"), ("welkin data sim\t", "simulate "),
                                ("welkin train --set lr_schedule=cos\t", "lr_schedule=cosine"), ("welkin train --set global_ba\t", "batch_size="),
                                ("welkin train --yaml_config presets.yaml --config sh\t", "short"), ("welkin bench --tiles --sec\t", "--seconds")):
            self.assertIn(expected, self.in_terminal(command, typed, expected))


class Usage(unittest.TestCase):
    def test_another_shell_is_an_error(self):
        for words in (["fish"], []):
            done = subprocess.run([BINARY, "completion", *words], capture_output=True, text=True, timeout=60)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertIn("Run welkin completion --help.", done.stderr)


if __name__ == "__main__":
    sys.exit(unittest.main())
