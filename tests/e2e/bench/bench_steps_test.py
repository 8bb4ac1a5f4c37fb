#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""welkin bench on steps: SYNTHETIC, FULL, all, layers, ladder, sweep, explore."""
import json
import os
import pathlib
import subprocess
import unittest

from bench_case import BINARY, BenchCase, SHORT, UNET, VIT


class BenchSteps(BenchCase):
    def check_rate(self, result, name):
        self.assertGreater(result[f"{name}_samples_per_s"], 0)
        self.assertGreaterEqual(result[f"{name}_samples_per_s_spread"], 0)
        self.assertEqual(len(result[f"{name}_samples_per_s_windows"]), 2)
        self.assertGreater(result[f"{name}_mfu"], 0)

    def test_synthetic_opens_no_file(self):
        for text, parameters in ((UNET, 4 * 8 * 64 + 8 + 8 * 16 * 64 + 16 + 16 * 8 * 64 + 8 + 16 * 5 * 64 + 5), (VIT, None)):
            result = self.bench(text, "--mode", "synthetic")
            self.check_rate(result, "synthetic")
            self.assertNotIn("full_samples_per_s", result)
            self.assertEqual(result["ranks"], 1)
            self.assertEqual(result["batch_samples"], 2)
            for phase in ("fetch", "forward", "backward", "reduce", "optimizer"):
                self.assertGreaterEqual(result["phase_seconds"][phase], 0)
            self.assertGreater(result["phase_seconds"]["backward"], 0)
            memory = result["memory_bytes"]
            if parameters:
                self.assertEqual(result["parameters"], parameters)
                self.assertEqual(memory["weights"], 4 * parameters)
                self.assertEqual(memory["gradients"], 4 * parameters)
                self.assertGreaterEqual(memory["optimizer"], 8 * parameters)
            self.assertGreater(result["resident_peak_bytes"], result["resident_before_model_bytes"])
            self.assertEqual(result["resident_peak_less_before_and_16_bytes_per_parameter"],
                             result["resident_peak_bytes"] - result["resident_before_model_bytes"] - 16 * result["parameters"])
            self.assertGreater(result["peak_fp32_flops_per_s"], 0)
            self.assertGreater(result["peak_bf16_flops_per_s"], 0)
            self.assertIn("the step", result["bottleneck"])
            self.assertGreater(result["process_start_to_first_step_s"], result["first_step_s"])
            self.assertLess(result["process_start_to_first_step_s"], 60)
            self.assertTrue(any("bf16 matmuls are" in line for line in result["advice"]))

    def test_micro_batches_count_as_one_step(self):
        result = self.bench(UNET, "--mode", "synthetic", "--micro_batch_size", "1", "--amp_mode", "bf16")
        self.assertEqual(result["batch_samples"], 2)
        self.assertEqual(result["precision"], "bf16")

    def test_all_has_every_figure_and_names_what_holds_it_back(self):
        done = self.welkin("bench", UNET, *SHORT, "--synthetic", "--num_data_workers", "1", "--json", "out.json")
        for word in ("IO: ", "SYNTHETIC: ", "FULL: ", "MFU ", "a step: fetch ", "memory: weights ", "bottleneck: ", "advice: "):
            self.assertIn(word, done.stdout)
        result = json.loads((self.folder / "out.json").read_text())
        self.assertGreater(result["io_samples_per_s"], 0)
        self.assertGreaterEqual(result["io_samples_per_s_spread"], 0)
        self.check_rate(result, "synthetic")
        self.check_rate(result, "full")
        self.assertEqual(result["mode"], "all")

    def test_what_sharded_ranks_send(self):
        # Weights of P bytes are gathered once for ZeRO 1 and 2, and for ZeRO 3 in both passes but for a block that is still there; padding is small.
        for stage, least_gathered, most_gathered in (("optimizer", 1, 1), ("gradients", 1, 1), ("full", 1.5, 2)):
            with self.subTest(stage):
                command = [BINARY, "launch", "-n", "2", "--", "bench", "--mode", "all", "--yaml_config", self.write(VIT), "--config", "run", *SHORT,
                           "--synthetic", "--shard", stage, "--json", self.folder / "out.json"]
                done = subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=300, cwd=self.folder)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                result = json.loads((self.folder / "out.json").read_text())
                self.assertGreater(result["nocomm_samples_per_s"], 0)
                calls = {call["collective"]: call for call in result["communication"]["calls"] if call["group"] == "dp [0, 1]"}
                whole = result["exchanged_bytes_per_step"]
                padding = 1.01
                self.assertGreaterEqual(calls["all_gather"]["bytes_per_step"], least_gathered * whole)
                self.assertLessEqual(calls["all_gather"]["bytes_per_step"], most_gathered * whole * padding)
                self.assertGreaterEqual(calls["reduce_scatter"]["bytes_per_step"], whole)
                self.assertLessEqual(calls["reduce_scatter"]["bytes_per_step"], whole * padding)
                self.assertNotIn("gradient exchange", calls)

    def test_layers(self):
        for text, name, count in ((UNET, "conv_down2", 1), (VIT, "blocks.*.attn.core", 2)):
            result = self.bench(text, "--layers")
            row = next(row for row in result["layers"] if row["name"] == name)
            self.assertEqual(row["count"], count)
            for key in ("flops", "bytes", "intensity", "forward_seconds", "backward_seconds", "mfu", "mfu_theoretical"):
                self.assertGreater(row[key], 0, key)
            self.assertIn(row["bound"], ("memory", "compute"))
            apart = sum(row["forward_seconds"] + row["backward_seconds"] for row in result["layers"])
            self.assertLess(apart, 1.05 * result["step_seconds_timed"])
        self.assertIn("% of measured", self.welkin("bench", UNET, *SHORT, "--layers").stdout)

    def test_ladder_says_which_switches_have_no_effect_here(self):
        done = self.welkin("bench", UNET, *SHORT, "--ladder", "--synthetic", "--plot", "ladder.svg", "--json", "ladder.json")
        self.assertIn("no effect: there is no copy to a device", done.stdout)
        rows = json.loads((self.folder / "ladder.json").read_text())["rows"]
        self.assertEqual([row["name"] for row in rows], ["baseline", "+ reading threads", "+ device pipeline", "+ mixed precision",
                                                         "+ fused optimizer", "+ fused operators", "+ graphs"])
        self.assertEqual([("samples_per_s" in row) for row in rows], [True, True, False, True, False, False, False])
        self.assertEqual(rows[0]["ratio"], 1)
        self.assertIn("<svg", (self.folder / "ladder.svg").read_text())

    def test_sweep(self):
        done = self.welkin("bench", UNET, *SHORT, "--sweep", "global_batch_size=1,2,4", "--plot", "sweep.svg", "--json", "sweep.json")
        self.assertIn("global_batch_size=4", done.stdout)
        result = json.loads((self.folder / "sweep.json").read_text())
        self.assertEqual(result["steps"], "synthetic")
        self.assertEqual(len(result["rows"]), 3)
        for row in result["rows"]:
            self.assertGreater(row["samples_per_s"], 0)
            self.assertGreaterEqual(row["peak_bytes"], 0)
        self.assertIn("<polyline", (self.folder / "sweep.svg").read_text())
        self.assertEqual(self.bench(UNET, "--sweep", "num_data_workers=0,1", "--synthetic")["steps"], "full")

    def test_explore(self):
        result = self.bench(UNET, "--explore")
        names = [row["name"] for row in result["rows"]]
        self.assertEqual(names[0], "as configured")
        for name in ("amp_mode=bf16", "micro_batch_size=1"):
            self.assertIn(name, names)
        self.assertIn(result["fastest"], names)
        # What the run has already, by name or as "auto", gains nothing.
        for key in ("gemm", "instruction_set"):
            self.assertNotIn(f"backend.{key}={result[key]}", names)
        self.assertEqual(len([name for name in names if name.startswith("backend.gemm=")]), 1)
        self.assertNotIn("threads=1", names)
        self.assertIn("num_data_workers=1", [row["name"] for row in self.bench(UNET, "--explore", "--synthetic", "--mode", "full")["rows"]])

    def test_a_row_without_enough_memory_says_so_and_the_others_are_measured(self):
        rows = self.bench(UNET, "--sweep", "memory_limit_gib=0.0001,1")["rows"]
        self.assertNotIn("samples_per_s", rows[0])
        self.assertRegex(rows[0]["note"], r"^out of memory: requested=.*, limit=105 KiB$")
        self.assertGreater(rows[1]["samples_per_s"], 0)

    @unittest.skipIf(any(pathlib.Path("/dev").glob("nvidia[0-9]*")), "on a GPU both rows have figures")
    def test_a_device_that_is_not_there_is_no_row_with_figures(self):
        rows = self.bench(UNET, "--sweep", "device=cpu,cuda")["rows"]
        self.assertGreater(rows[0]["samples_per_s"], 0)
        self.assertNotIn("samples_per_s", rows[1])
        self.assertIn("there is no GPU that torch can use: device=cuda", rows[1]["note"])

    def test_pictures_show_rate_ratio_and_memory(self):
        self.welkin("bench", UNET, *SHORT, "--sweep", "global_batch_size=1,2,4", "--plot", "curves.svg")
        self.welkin("bench", UNET, *SHORT, "--sweep", "amp_mode=none,bf16", "--plot", "bars.svg")
        for name, drawn in (("curves.svg", "<polyline"), ("bars.svg", "<rect")):
            text = (self.folder / name).read_text()
            self.assertIn(drawn, text)
            for axis in (">samples/s<", ">ratio to the first<", ">peak memory, MiB<"):
                self.assertIn(axis, text, name)

    def test_no_mode_is_faster_than_the_peak(self):
        for mode in ("bf16", "fp16"):
            result = self.bench(UNET, "--mode", "synthetic", "--amp_mode", mode)
            peak = max(result["peak_fp32_flops_per_s"], result["peak_bf16_flops_per_s"])
            self.assertEqual(result["synthetic_mfu"], result["synthetic_flops_per_s"] / peak)

    def test_what_is_measured_may_be_a_word(self):
        for words, flags in ((["io", "--synthetic"], ["--mode", "io", "--synthetic"]), (["step"], ["--mode", "synthetic"]),
                             (["step", "--mode", "full", "--synthetic"], ["--mode", "full", "--synthetic"]), (["layers"], ["--layers"]),
                             (["memory"], ["--memory"]), (["sweep", "threads=1,2"], ["--sweep", "threads=1,2"])):
            command = [BINARY, "bench", *words, "--yaml_config", self.write(UNET), "--config", "run", *SHORT, "--json", "-"]
            done = subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=60, cwd=self.folder, check=True)
            self.assertEqual(list(json.loads(done.stdout)), list(self.bench(UNET, *flags)), words)
        for words, text in ((["tiles", "--help"], "Times matmuls"), (["scaling", "--help"], "weak"), (["collectives", "--help"], "collective")):
            done = subprocess.run([BINARY, "bench", *words], capture_output=True, text=True, timeout=60, check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(text, done.stdout)
        for words, text in ((["sinthetic"], "nothing of this name is measured: sinthetic. Did you mean: synthetic"),
                            (["sweep"], "bench sweep needs what it is over: KEY=V1,V2")):
            done = subprocess.run([BINARY, "bench", *words], capture_output=True, text=True, timeout=60, check=False)
            self.assertEqual(done.returncode, 2)
            self.assertIn(text, done.stderr)

    def test_every_row_has_the_threads_that_it_asks_for(self):
        usable = self.bench(UNET, "--mode", "synthetic", "--threads", "0")["threads"]
        result = self.bench(UNET, "--threads", "0", "--sweep", "threads=1,0")
        self.assertEqual(result["threads"], usable, "0: those at the start, not those of the last row")

    def test_lists_are_swept(self):
        rows = self.bench(VIT, "--sweep", "img_size=[16,32],[32,32]")["rows"]
        self.assertEqual([row["name"] for row in rows], ["img_size=[16,32]", "img_size=[32,32]"])
        self.assertTrue(all(row["samples_per_s"] > 0 for row in rows))

    def test_the_machine_is_measured_without_the_limit_of_the_model(self):
        for flags in (["--mode", "synthetic"], ["--layers"]):
            self.assertGreater(self.bench(UNET, *flags, "--memory_limit_gib", "0.02")["peak_bytes_per_s"], 0)

    def test_a_machine_has_peaks_however_short_a_window(self):
        result = self.bench(UNET, "--mode", "synthetic", "--window_seconds", "0")
        self.assertGreater(result["peak_fp32_flops_per_s"], 0)
        self.assertLess(result["synthetic_mfu"], 1)

    def test_a_row_without_data_says_so_and_the_others_are_measured(self):
        done = self.welkin("bench", UNET, *SHORT, "--mode", "full", "--sweep", "data_loader_config=inmem,synthetic", "--json", "rows.json")
        self.assertIn("/nowhere/box.h5", done.stdout)
        self.assertEqual(["samples_per_s" in row for row in json.loads((self.folder / "rows.json").read_text())["rows"]], [False, True])
        done = self.welkin("bench", UNET, *SHORT, "--sweep", "memory_limit_gib=1e-12,1e-6", "--plot", "rows.svg", code=3)
        self.assertEqual(done.stdout.count("out of memory"), 2)
        self.assertIn("[bench] nothing could be measured, so there is no picture. Each row says why", done.stderr)
        self.assertFalse((self.folder / "rows.svg").exists())

    def test_a_dry_run_measures_nothing(self):
        for dry in ("--dry_run", "--dry_run=yaml"):
            done = self.welkin("bench", UNET, "--mode", "io", dry)  # there are no data to read
            self.assertIn("global_batch_size", done.stdout)
            self.assertNotIn("samples/s", done.stdout)

    def test_results_that_cannot_be_printed_are_an_error(self):
        with open("/dev/full", "w") as full:
            for flags in (["--mode", "io", "--synthetic"], ["--mode", "io", "--synthetic", "--json", "-"]):
                command = [BINARY, "bench", "--yaml_config", self.write(UNET), "--config", "run", *SHORT, *flags]
                done = subprocess.run([*map(str, command)], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60, cwd=self.folder)
                self.assertEqual(done.returncode, 3, done.stderr)
                self.assertIn("[output] standard output could not be written to its end", done.stderr)

    def test_errors(self):
        for flags, text in ((["--mode", "fast"], "[bench] unknown mode: mode=fast. Choose one of: io, synthetic, full, nocomm, all"),
                            (["--ladder", "--explore"], "[bench] one thing is measured at a time: --ladder, --explore"),
                            (["--sweep", "threads"], "[bench] no sweep: --sweep threads. Write --sweep key=value,value"),
                            (["--sweep", "threads=1,,2"], "[bench] no sweep"),
                            (["--sweep", "threds=1"], "threds"),
                            (["--mode", "io", "--ladder"], "steps are measured one kind at a time: mode=io"),
                            (["--mode", "synthetic", "--plot", "x.svg"], "[bench] this mode has no picture: mode=synthetic"),
                            (["--mode="], "[bench] unknown mode: mode=."),
                            (["--mode", "io", "--set", "global_batch_size=0"], "[config] --set global_batch_size: global_batch_size must be at least 1"),
                            (["--sweep", "global_batch_size=0,1"], "global_batch_size must be at least 1"),
                            (["--layers", "--mode", "io"], "[bench] --layers times the layers of synthetic steps: mode=io. Leave --mode out"),
                            (["--memory", "--mode", "synthetic"], "[bench] --memory makes no step: mode=synthetic. Leave --mode out"),
                            (["--mode", "synthetic", "--windows="], "[bench] not a usable number: --windows=. Give a whole number from 1")):
            done = self.welkin("bench", UNET, *SHORT, *flags, code=2)
            self.assertIn(text, done.stderr)

    def test_outputs_that_cannot_be_written_are_known_before_anything_is_measured(self):
        for flags, text in ((["--json", "no/out.json"], "--json=no/out.json, because there is no folder no"), (["--json", "."], "--json=., because it is a folder"),
                            (["--json="], "--json=, because it has no name"), (["--ladder", "--plot", "no/x.svg"], "--plot=no/x.svg, because there is no"),
                            (["--ladder", "--plot", "-"], "--plot=-")):
            mode = [] if "--ladder" in flags else ["--mode", "synthetic"]
            done = self.welkin("bench", UNET, *SHORT, *mode, *flags, code=2)
            self.assertIn("[bench] a picture is not printed: --plot=-" if text == "--plot=-" else f"[bench] this file cannot be written: {text}", done.stderr)
            self.assertEqual(done.stdout, "")
        for study in (["--collectives", "-n", "2"], ["--parallel_figure", "adapter"]):
            done = subprocess.run([BINARY, "bench", *study, "--json", "no/out.json"], capture_output=True, text=True, timeout=60, cwd=self.folder)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn("[bench] this file cannot be written: --json=no/out.json, because there is no folder no", done.stderr)

    def test_a_device_is_written_to_and_stays(self):
        os.mkfifo(self.folder / "pipe")
        reader = subprocess.Popen(["cat", "pipe"], stdout=subprocess.PIPE, text=True, cwd=self.folder)
        self.addCleanup(reader.kill)
        self.welkin("bench", UNET, *SHORT, "--mode", "synthetic", "--json", "pipe")
        self.assertIn("synthetic_samples_per_s", json.loads(reader.communicate(timeout=60)[0]))
        self.assertTrue((self.folder / "pipe").is_fifo())
        self.assertEqual(list(self.folder.glob("*.svg")), [])
        self.welkin("bench", UNET, *SHORT, "--mode", "full", code=3)  # the data are not there


if __name__ == "__main__":
    unittest.main()
