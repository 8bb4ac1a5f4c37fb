# SPDX-License-Identifier: Apache-2.0
"""What the tests of docs/tutorials share: a command's Welkin form taken apart, and the shipped program in a clean environment."""
import csv
import os
import pathlib
import re
import shlex
import subprocess

BINARY = os.environ["WELKIN_BINARY"]
SOURCE = pathlib.Path(os.environ["WELKIN_SOURCE_DIR"]).resolve()
TEXTS = SOURCE.parent / "shared" / "seeds"  # the tutorials' texts, no part of this repository
PAGES = {"sc21": "sc21-tutorial.txt", "sc22": "sc22-tutorial.txt", "sc23": "sc23-tutorial.txt", "dl4sci25": "dl4sci25-tutorial.txt",
         "lecture": "ellis-lecture.txt"}
TASKS_PER_NODE = 4  # of scripts/slurm/submit_train.sh
UNET = ["--set", "width=4", "--set", "scales=2", "--set", "data_size=8", "--set", "box_size=[32,16]", "--set", "Nsamples=64", "--set", "Nsamples_val=16"]
VIT = ["--set", "img_size=[16,32]", "--set", "patch_size=4", "--set", "embed_dim=16", "--set", "depth=2", "--set", "num_heads=4",
       "--set", "limit_nsamples=16", "--set", "limit_nsamples_val=16", "--num_iters", "2"]


def read_table():
    with open(SOURCE / "tests/e2e/tutorials/tutorial_commands.csv", newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def environment(**more):
    drop = re.compile(r"(SLURM|PMI|PMIX|OMPI|FLUX|TORCHELASTIC|MASTER_|WELKIN_L|WELKIN_P)|(WORLD_SIZE|RANK|WORLD_RANK|LOCAL_RANK)$")
    return {**{name: value for name, value in os.environ.items() if not drop.match(name)}, "OMP_NUM_THREADS": "1", **more}


class Form:
    """A Welkin form taken apart: variables, what `welkin` is given, and the ranks that the launcher around it would start."""

    def __init__(self, text):
        words = shlex.split(text)
        self.variables = {}
        while re.match(r"^[A-Z_0-9]+=", words[0]):
            name, value = words.pop(0).split("=", 1)
            self.variables[name] = value
        self.nodes, self.ranks = 1, 1
        if words[0] == "sbatch":
            script = words.index("scripts/slurm/submit_train.sh")
            self.arguments = ["train", *words[script + 1:]]
            self.nodes = int(self.option(words[:script], "--nodes", 1))
            self.ranks = self.nodes * int(self.option(words[:script], "--ntasks-per-node", TASKS_PER_NODE))
            return
        self.launcher = words[:words.index("welkin")] if "welkin" in words else words
        self.arguments = words[words.index("welkin") + 1:] if "welkin" in words else []
        if self.launcher and self.launcher[0] != "nsys":
            self.ranks = int(self.option(self.launcher, "--nproc_per_node", self.option(self.launcher, "--ntasks-per-node", 2)))
        if self.arguments[:1] == ["launch"]:
            inner = self.arguments.index("--")
            self.ranks = int(self.arguments[self.arguments.index("-n") + 1])
            self.arguments = self.arguments[inner + 1:]

    @staticmethod
    def option(words, name, otherwise):
        for word, following in zip(words, [*words[1:], ""]):
            if word == name:
                return following
            if word.startswith(name + "="):
                return word.split("=", 1)[1]
        return otherwise

    def small(self, data, root):
        """The same command for a small machine."""
        is_unet = "sc21" in self.arguments or "sc22" in self.arguments
        arguments = [*self.arguments, "--data_root", str(data / ("boxes" if is_unet else "weather")), "--log_root", str(root), "--device", "cpu",
                     "--threads", "1", *(UNET if is_unet else VIT)]
        if "--local_batch_size" not in self.arguments:
            arguments += ["--local_batch_size", "4"]
        if is_unet and "--num_epochs" not in self.arguments:
            arguments += ["--num_epochs", "1"]
        return arguments


def run(command, limit_s=120, folder=SOURCE, **variables):
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=limit_s, env=environment(**variables))
