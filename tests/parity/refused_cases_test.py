# SPDX-License-Identifier: Apache-2.0
"""`welkin verify` on cases that must fail: wrong numbers are named by their first layer, damaged and hostile files are refused."""
import json
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import case_tables
from case_writer import change, change_meta, write_model_case
from numpy_models import Vit

BINARY = os.environ["WELKIN_BINARY"]
GOLDENS = pathlib.Path(os.environ.get("WELKIN_GOLDENS") or pathlib.Path(os.environ["WELKIN_SOURCE_DIR"]).parent / "shared/goldens")
DEVIATES, DATA = 1, 3  # exit codes: the numbers differ; the case cannot be run


OTHERS = [-1, 0, 1, 3, 2 ** 31, 2 ** 62, 2 ** 63, -2 ** 63, 10 ** 30, 1e308, -0.5, float("nan"), float("inf"), "", "x", "../x", "\u0000", None, True, [], {}, [1, 2], {"x": 1}]


def leaves(value, place=()):
    """Paths to everything below a JSON value."""
    if place:
        yield place
    if isinstance(value, (dict, list)):
        for key, below in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaves(below, place + (key,))


def replaced(value, place, other):
    if not place:
        return other
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[place[0]] = replaced(value[place[0]], place[1:], other)
    return copy


class RefusedCases(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.root = pathlib.Path(tempfile.mkdtemp(prefix="welkin-cases-"))
        model = Vit((2, 2), (8, 12), 4, 16, 2, 2, joint=False)
        cls.stored = write_model_case(cls.root / "stored", model, 2, {"lr": 1e-3}, steps=1)
        cls.formula = write_model_case(cls.root / "formula", model, 1, {"lr": 1e-3}, by_formula=True)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.root)

    def copy(self, source):
        folder = self.root / self.id().rsplit(".", 1)[-1] / source.name
        shutil.copytree(source, folder)
        for path in [folder, *folder.rglob("*")]:
            path.chmod(0o755)
        return folder

    def run_case(self, folder, *arguments):
        """Exit code, the case's report and everything printed."""
        done = subprocess.run([BINARY, "verify", "--case", str(folder), "--json", "-", *arguments], capture_output=True, text=True, timeout=120)
        self.assertGreaterEqual(done.returncode, 0, "killed by a signal: " + done.stderr)
        case = json.loads(done.stdout)["cases"][0] if done.stdout else None
        return done.returncode, case, done.stderr

    def deviates(self, folder, first, *words, arguments=()):
        code, case, text = self.run_case(folder, *arguments)
        self.assertEqual(code, DEVIATES, text)
        self.assertEqual(case["first_deviation"], first)
        self.assertFalse(case["passed"])
        for word in words:
            self.assertIn(word, text)

    def refused(self, folder, *words):
        code, case, text = self.run_case(folder)
        self.assertEqual(code, DATA, text)
        for word in words:
            self.assertIn(word, case["error"])

    def test_a_report_that_cannot_be_written_is_refused_first(self):
        done = subprocess.run([BINARY, "verify", "--case", str(self.stored), "--json", "/nowhere/report.json"], capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("[verify] this file cannot be written: --json=/nowhere/report.json", done.stderr)
        self.assertEqual(done.stdout, "")

    def test_a_weight_is_perturbed(self):
        folder = self.copy(self.stored)
        change(folder / "weights.safetensors", lambda t: t["blocks.1.mlp.fc1.weight"].__setitem__((0, 0), t["blocks.1.mlp.fc1.weight"][0, 0] + 0.01))
        self.deviates(folder, "act.block1.mlp", "first to deviate: act.block1.mlp (forward), layer blocks.1.mlp")

    def test_two_activations_are_swapped(self):
        folder = self.copy(self.stored)
        def swap(t):
            t["act.block0.attn"], t["act.block0.mlp"] = t["act.block0.mlp"], t["act.block0.attn"]
        change(folder / "outputs.safetensors", swap)
        self.deviates(folder, "act.block0.attn", "first to deviate: act.block0.attn (forward)")

    def test_gradients_deviate_from_the_output_back(self):
        folder = self.copy(self.stored)
        def scale(t):
            for name in ("blocks.0.norm1.weight", "blocks.1.norm2.weight", "patch_embed.proj.bias"):
                t[name] *= np.float32(1.01)
        change(folder / "grads.safetensors", scale)
        self.deviates(folder, "blocks.1.norm2.weight", "first to deviate: blocks.1.norm2.weight (gradient), layer blocks.1.norm2")

    def test_the_trajectory_deviates(self):
        folder = self.copy(self.stored)
        change_meta(folder, lambda m: m["optimizer"].__setitem__("lr", 2e-3))
        self.deviates(folder, "trajectory.loss[1]")

    def test_a_tensor_is_missing(self):
        folder = self.copy(self.stored)
        change(folder / "grads.safetensors", lambda t: t.pop("head.weight"))
        self.deviates(folder, "head.weight", "the tensor is missing, file=grads.safetensors")

    def test_a_gradient_that_was_never_promised_is_missing(self):
        folder = self.copy(self.stored)
        change(folder / "grads.safetensors", lambda t: t.pop("head.weight"))
        change_meta(folder, lambda m: m.pop("files"))
        self.deviates(folder, "head.weight", "the case holds no value of this tensor")

    def test_nobody_compares_an_unknown_tensor(self):
        folder = self.copy(self.stored)
        change(folder / "grads.safetensors", lambda t: t.__setitem__("blocks.7.norm1.weight", np.ones(3, np.float32)))
        self.deviates(folder, "blocks.7.norm1.weight", "nobody compared it")

    def test_an_activation_of_no_known_place(self):
        folder = self.copy(self.stored)
        change(folder / "outputs.safetensors", lambda t: t.__setitem__("act.block9.norm1", np.ones(3, np.float32)))
        self.deviates(folder, "act.block9.norm1", "the model has no such place")

    def test_a_shape_is_wrong(self):
        folder = self.copy(self.stored)
        change(folder / "outputs.safetensors", lambda t: t.__setitem__("output", t["output"].reshape(2, 2, 12, 8)))
        change_meta(folder, lambda m: m.pop("files"))
        self.deviates(folder, "output", "wrong shape: computed=[2, 2, 8, 12], stored=[2, 2, 12, 8]")

    def test_a_case_is_judged_by_its_own_bounds(self):
        folder = self.copy(self.stored)
        change_meta(folder, lambda m: m["recommended_tolerance"]["forward"].update(rel_l2=1e-12))
        self.deviates(folder, "act.patch_embed")

    def test_a_weight_of_another_shape(self):
        folder = self.copy(self.stored)
        change(folder / "weights.safetensors", lambda t: t.__setitem__("head.weight", np.ones((31, 16), np.float32)))
        self.refused(folder, "wrong shape: parameter=head.weight, model=[32, 16], case=[31, 16]")

    def test_a_file_is_cut_short(self):
        folder = self.copy(self.stored)
        path = folder / "weights.safetensors"
        os.truncate(path, path.stat().st_size - 100)
        self.refused(folder, "[safetensors]", "data out of range", "weights.safetensors")

    def test_not_a_number(self):
        folder = self.copy(self.stored)
        change(folder / "inputs.safetensors", lambda t: t["input"].__setitem__((0, 0, 0, 0), np.nan))
        self.refused(folder, "values are not finite numbers: tensor=input")

    def test_a_checksum_is_wrong(self):
        folder = self.copy(self.formula)
        change_meta(folder, lambda m: m["tensors"]["norm.weight"].update(bits_sum_u64="0x123"))
        self.refused(folder, "a generated tensor does not have its stated checksum: tensor=norm.weight")

    def test_first_values_are_wrong(self):
        folder = self.copy(self.formula)
        change_meta(folder, lambda m: m["tensors"]["target"]["first4"].__setitem__(2, 0.125))
        self.refused(folder, "a generated tensor differs from its stated first values: tensor=target, element=2")

    def test_another_salt(self):
        folder = self.copy(self.formula)
        change_meta(folder, lambda m: m["formula"].update(salt="other"))
        self.refused(folder, "differs from its stated first values")

    def test_a_batch_of_nothing(self):
        folder = case_tables.schedules(self.root / "nothing" / "schedules")
        table = json.loads((folder / "rates.json").read_text())
        table["tables"][1]["config"]["global_bs"] = 0
        (folder / "rates.json").write_text(json.dumps(table))
        self.refused(folder, "a size is out of range: global_bs=0")

    def test_names_do_not_leave_the_folder(self):
        for key in ("weights_from", "inputs_from"):
            folder = self.copy(self.stored) if key == "weights_from" else folder
            change_meta(folder, lambda m: (m.pop("weights_from", None), m.update({key: "../../etc"})))
            self.refused(folder, "a case may name files beside its meta.json only")
        table = self.copy(case_tables.splits(self.root / "escape" / "splits"))
        change_meta(table, lambda m: m.update(file="../../../etc/passwd"))
        self.refused(table, "a case may name files beside its meta.json only")

    def test_a_case_that_takes_from_itself(self):
        folder = self.copy(self.stored)
        change_meta(folder, lambda m: m.update(weights_from=folder.name))
        self.refused(folder, "a case takes from one that takes from another")

    def test_json_without_end_or_bottom(self):
        folder = self.copy(self.stored)
        for text, words in (("[" * 5_000_000, "nested too deeply"), ('{"kind": "model"', "not JSON"), ('{"kind": "modal"}', "unknown kind of case: kind=modal"),
                            ("[]", "states no kind"), ('{"kind": "model"}', "")):
            (folder / "meta.json").write_text(text)
            self.refused(folder, words)

    def test_sizes_that_no_machine_has(self):
        edits = ({"embed_dim": 10 ** 9}, {"depth": 10 ** 12}, {"mlp_ratio": 1e300}, {"embed_dim": -4}, {"patch_size": 0}, {"num_heads": 0}, {"depth": "many"}, {"embed_dim": 2 ** 70})
        for edit in edits:
            with self.subTest(edit):
                folder = self.copy(self.stored)
                change_meta(folder, lambda m: m["model"]["constructor"].update(edit))
                self.refused(folder, "")
                shutil.rmtree(folder)
        folder = self.copy(self.formula)
        change_meta(folder, lambda m: m["tensors"]["input"].update(shape=[2 ** 40, 2 ** 40]))
        self.refused(folder, "a tensor by formula is too large")

    def test_a_header_that_lies(self):
        folder = self.copy(self.stored)
        (folder / "outputs.safetensors").write_bytes(struct.pack("<Q", 2 ** 62) + b"{}")
        self.refused(folder, "[safetensors]")

    def test_tables_with_one_wrong_value(self):
        edits = {"schedules": ("rates.json", lambda t: t["tables"][0]["lr_corrected"].__setitem__(7, 1e-3), "table 0 (SC23, DL4SCI25) lr_corrected"),
                 "splits": ("splits.json", lambda t: t["cases"][1]["sections"].reverse(), "tutorial 11 over 6"),
                 "rank_groups": ("groups.json", lambda t: t["cases"][0]["groups"]["pp-dp"][0].reverse(), "dp-pp-tp-cp tp3 cp2 pp2 dp5 groups pp-dp"),
                 "era5_pairs": ("pairs.json", lambda t: t["cases"][0]["correct_pairs"].pop(), "years dt 2 pairs")}
        for name, (file, edit, first) in edits.items():
            with self.subTest(name):
                folder = getattr(case_tables, name)(self.root / "tables" / name)
                table = json.loads((folder / file).read_text())
                edit(table)
                (folder / file).write_text(json.dumps(table))
                self.deviates(folder, first)

    def test_other_cases_still_run_and_a_folder_without_cases_is_refused(self):
        folder = self.copy(self.stored)
        good = case_tables.splits(folder.parent / "zz_splits")
        (folder / "meta.json").write_text("{}")
        done = subprocess.run([BINARY, "verify", "--brief", "--case", str(folder.parent)], capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, DATA)
        self.assertIn(f"{good.name} (splits): pass", done.stdout)
        self.assertIn("1 of 2 cases FAIL: stored", done.stdout)
        (folder.parent / "empty").mkdir()
        (folder.parent / "loop").symlink_to("loop")
        for path, words in ((folder.parent / "empty", "no meta.json in folder="), (folder.parent / "absent", "there is no such case"),
                            (folder.parent / "loop", "there is no such case")):
            done = subprocess.run([BINARY, "verify", "--case", str(path)], capture_output=True, text=True, timeout=120)
            self.assertEqual(done.returncode, DATA)
            self.assertIn(words, done.stderr)

    def test_any_value_may_be_anything(self):
        """Every leaf of every JSON file of small cases becomes something else, one at a time: an answer for each case, no crash."""
        random = np.random.default_rng(7)
        root = self.root / "anything"
        sources = [self.stored, self.formula] + [write(self.root / "sources" / write.__name__) for write in case_tables.ALL]
        sources += [GOLDENS / name for name in ("nbody_crops", "adam_steps", "losses_metrics") if (GOLDENS / name).is_dir()]
        count = 0
        for source in sources:
            for file in sorted(source.glob("*.json")):
                content = json.loads(file.read_text())
                places = list(leaves(content))
                for place in (places[i] for i in random.permutation(len(places))[:40]):
                    folder = root / f"{count:04}"
                    folder.mkdir(parents=True)
                    for path in source.iterdir():
                        (folder / path.name).symlink_to(path)
                    (folder / file.name).unlink()
                    value = OTHERS[random.integers(len(OTHERS))]
                    (folder / file.name).write_text(json.dumps(replaced(content, place, value)))
                    count += 1
        code, _, text = self.run_case(root, "--brief")
        self.assertIn(code, (0, DEVIATES, DATA), text[-2000:])
        self.assertIn(f"of {count} cases", text)

    def test_any_byte_may_be_anything(self):
        random = np.random.default_rng(8)
        root, count = self.root / "bytes", 60
        for i in range(count):
            folder = root / f"{i:04}"
            shutil.copytree(self.stored, folder)
            path = folder / random.choice(["weights.safetensors", "outputs.safetensors", "grads.safetensors", "inputs.safetensors", "trajectory.safetensors"])
            data = bytearray(path.read_bytes())
            for _ in range(8):
                data[random.integers(min(4000, len(data)) if random.integers(2) else len(data))] = random.integers(256)
            path.write_bytes(data)
        code, _, text = self.run_case(root, "--brief")
        self.assertIn(code, (0, DEVIATES, DATA), text[-2000:])
        self.assertRegex(text, f"{count} cases")

    @unittest.skipUnless((GOLDENS / "vit25_small_bf16").is_dir(), "no reference cases: set WELKIN_GOLDENS")
    def test_low_precision_that_was_not_used_is_seen(self):
        self.deviates(GOLDENS / "vit25_small_bf16", "output against float32", "too close to float32, so the low precision was not used", arguments=("--amp_mode", "fp32"))

    @unittest.skipUnless((GOLDENS / "adam_steps").is_dir(), "no reference cases: set WELKIN_GOLDENS")
    def test_binary_tables_with_one_wrong_value(self):
        edits = {"adam_steps": ("data", "adam0.params_f32"), "losses_metrics": ("data", "vit1.weighted_acc_f64_exact_pi"), "nbody_crops": ("data", "cube.rot7"),
                 "unpatchify_order": ("data", "tokens"), "era5_pairs": ("samples", "dt2.sample3.target")}
        for name, (stem, tensor) in edits.items():
            with self.subTest(name):
                folder = self.copy(GOLDENS / name)
                change(folder / f"{stem}.safetensors", lambda t: t[tensor].reshape(-1).__setitem__(-1, t[tensor].reshape(-1)[-1] + 0.01))
                self.deviates(folder, tensor)


if __name__ == "__main__":
    unittest.main()
