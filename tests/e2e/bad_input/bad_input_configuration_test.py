# SPDX-License-Identifier: Apache-2.0
"""Configurations that are wrong: each is refused with exit code 2, file, line and remedy, before anything is opened or written."""
import unittest

from bad_input_case import DONE, FIELDS, USAGE, BadInputCase, yaml_text

PLAIN = yaml_text(FIELDS)


def line_of(text, key):
    return 1 + next(i for i, line in enumerate(text.splitlines()) if line.strip().startswith(f"{key}:"))


class BadConfiguration(BadInputCase):
    one_process = True

    def refuse(self, text, *parts, arguments=()):
        return self.refuse_training(text, USAGE, *parts, arguments=("--dry_run", *arguments))

    def test_a_layout_that_the_model_does_not_take_is_refused_before_anything_starts(self):
        keys = {**FIELDS, "depth": 4, "data_loader_config": "synthetic"}
        for flags, text in ((("--world", "8", "--pipeline_parallel", "8"), "the pipeline has more stages than the model has blocks: stages=8, blocks=4"),
                            (("--world", "2", "--pipeline_parallel", "2", "--set", "pipeline_chunks=2"), "this schedule has one chunk of the model per rank"),
                            (("--world", "2", "--spatial", "2x1x1"), "the plan of the model does not split it over this axis: model=vit, d=2")):
            self.refuse_training(keys, USAGE, text, arguments=("--dry_run", *flags))
        done = self.train(keys, "--dry_run", "--world", "8", "--pipeline_parallel", "2", "--context_parallel", "2", "--spatial", "1x1x2")
        self.assertEqual(done.returncode, DONE, done.stderr)

    def test_the_plain_file_is_good(self):
        done = self.train(PLAIN, "--dry_run")
        self.assertEqual(done.returncode, DONE, done.stderr)
        self.assertIn("warning: paths of the training data do not exist: train_data_path=", done.stderr)
        self.assertFalse(self.logs.exists())

    def test_unknown_preset(self):
        self.refuse(PLAIN + "short:\n  depth: 1\n", "unknown preset: --config shrt", "Nearest: short", "Presets of the file: base, short",
                    arguments=("--config", "shrt"))

    def test_a_file_that_is_not_there(self):
        done = self.run_command([*self.train_command(PLAIN)[:2], "--yaml_config", "nowhere/run.yaml"])
        self.assert_refused(done, USAGE, "the file does not exist: --yaml_config nowhere/run.yaml", f"Looked in {self.root}")

    def test_a_folder_as_file(self):
        done = self.run_command([*self.train_command(PLAIN)[:2], "--yaml_config", self.root])
        self.assert_refused(done, USAGE, str(self.root), "not a regular file", "Give a YAML file")

    def test_deepspeeds_json_that_does_not_fit(self):
        path = self.root / "ds.json"
        for json, *parts in (("[]", "not a JSON object"), ('{"zero_optimisation": {}}', "zero_optimisation is unknown", "Nearest: zero_optimization"),
                             ('{\n"zero_optimization": {"cpu_offload_params": true}}', "ds.json:2 zero_optimization.cpu_offload_params", "cannot be done here"),
                             ('{"train_batch_size": 3, "train_micro_batch_size_per_gpu": 2}', "the batch is not the product of its parts")):
            path.write_text(json)
            self.refuse(PLAIN, *parts, arguments=("--ds_config", path))

    def test_two_wrong_things_are_reported_together(self):
        text = PLAIN + "  embed_dimm: 32\n  lr: fast\n  optimiser: Adam\n"
        message = self.refuse(text, "3 problems", "unknown key: embed_dimm=32", "Nearest: embed_dim", "unknown key: optimiser=Adam", "optimizer")
        for key in ("embed_dimm", "lr", "optimiser"):
            self.assertIn(f"run.yaml:{line_of(text, key)}: ", message)
        self.assertIn("fast", message)

    def test_values_out_of_range_and_contradictions(self):
        keys = {**FIELDS, "num_heads": 3, "patch_size": 5, "global_batch_size": -4}
        self.refuse(yaml_text(keys), "num_heads does not divide embed_dim: num_heads=3", "patch_size does not divide img_size: patch_size=5",
                    "global_batch_size", "-4")

    def test_unknown_flag_names_the_nearest(self):
        self.refuse(PLAIN, "--num_iter", "--num_iters", arguments=("--num_iterz", "4"))

    def test_an_unknown_verb_names_the_nearest(self):
        self.assert_refused(self.run_command([self.train_command(PLAIN)[0], "trainn"]), USAGE, "unknown verb: verb=trainn", "Did you mean: train")
        self.assert_refused(self.run_command([self.train_command(PLAIN)[0], "trian"]), USAGE, "unknown verb: verb=trian", "Did you mean: train")

    def test_recorded_steps_without_a_gpu(self):
        self.refuse_training(PLAIN, USAGE, "[cuda_graph] steps cannot be recorded here: cuda_graph=true, device=cpu", "--device cuda",
                             arguments=("--cuda_graph", "--device", "cpu"))
        self.assertFalse(self.logs.exists())

    def test_missing_plugin(self):
        command = self.train_command(PLAIN)
        command[1:1] = ["--plugin", "no/such.so"]
        self.assert_refused(self.run_command(command), USAGE, "[plugin] there is no such file: plugin=no/such.so", "path of a shared object")
        self.assertFalse(self.logs.exists())

    def test_a_plugin_that_is_no_library(self):
        (self.root / "text.so").write_text("not a library\n")
        command = self.train_command(PLAIN)
        command[1:1] = ["--plugin", "text.so"]
        self.assert_refused(self.run_command(command), USAGE, "cannot be loaded: plugin=text.so", "welkin_add_plugin")


class HostileYaml(BadInputCase):
    one_process = True

    def refuse(self, text, *parts):
        return self.refuse_training(text, USAGE, "run.yaml", *parts, arguments=("--dry_run",))

    def test_duplicate_key(self):
        text = PLAIN + "  depth: 2\n"
        self.refuse(text, f"run.yaml:{len(text.splitlines())}: the key occurs twice in one mapping: key=depth", f"first line={line_of(PLAIN, 'depth')}",
                    "Remove one of them")

    def test_duplicate_preset(self):
        self.refuse(PLAIN + PLAIN, "the key occurs twice in one mapping: key=base, first line=1")

    def test_billion_laughs(self):
        lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
        lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 20)]
        self.refuse("\n".join(lines) + "\n" + PLAIN, "too large once its aliases are expanded: more than 100000 nodes", "check that this is the right file")

    def test_billion_laughs_by_merge_keys(self):
        lines = ["m0: &m0 {" + ", ".join(f"k{i}: 1" for i in range(400)) + "}"]
        lines += [f"m{i}: &m{i} {{<<: [*m{i - 1}], a{i}: [{', '.join([f'*m{i - 1}'] * 20)}]}}" for i in range(1, 12)]
        self.refuse("\n".join(lines) + "\n" + PLAIN, "more than 100000 nodes")

    def test_deep_nesting(self):
        for opening, closing in ("[", "]"), ("{a: ", "}"):
            self.refuse(f"base: {opening * 20000}1{closing * 20000}\n", "run.yaml:1: nested too deeply: limit=32", "Configurations are flat")

    def test_an_alias_inside_its_own_anchor(self):
        self.refuse("base: &base\n  model: vit\n  more: [*base]\n", "the alias lies inside its own anchor: alias=*base")

    def test_an_alias_of_nothing(self):
        self.refuse("one: &plain {depth: 1}\nbase:\n  <<: *plan\n", "the alias names no anchor above it: alias=*plan", "Nearest: *plain")

    def test_a_large_file(self):
        self.refuse(PLAIN + "# " + "x" * (1 << 20) + "\n", "too large", "limit=1048576")

    def test_many_unknown_keys_stay_readable(self):
        message = self.refuse("base:\n" + "".join(f"  nonsense_{i}: {i}\n" for i in range(20000)), "problems, of which the first")
        self.assertLess(len(message), 20000)

    def test_tabs_bytes_and_emptiness(self):
        self.refuse("base:\n\tmodel: vit\n", "run.yaml:2:1: not valid YAML", "never with tabs")
        self.refuse("", "the file is empty", "presets")
        self.refuse("- 1\n", "the file is a list, not a mapping")
        self.write_yaml("").write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(range(256)))
        done = self.run_command([*self.train_command(PLAIN)[:2], "--dry_run", "--yaml_config", self.write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(range(256)))])
        self.assert_refused(done, USAGE, "not valid YAML")

    def write_bytes(self, content):
        path = self.root / "bytes.yaml"
        path.write_bytes(content)
        return path


if __name__ == "__main__":
    unittest.main()
