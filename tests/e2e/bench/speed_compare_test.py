# SPDX-License-Identifier: Apache-2.0
"""bench/compare: what makes a goal met, what a fallen ratio is, and that a second run decides."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import types
import unittest
from unittest import mock

SOURCE = pathlib.Path(os.environ["WELKIN_SOURCE_DIR"])
sys.path.insert(0, str(SOURCE / "bench/speed"))

import compare  # noqa: E402
import gpu  # noqa: E402
import stored  # noqa: E402
import tables  # noqa: E402
from rows import ADAM_BYTES, FULL, SIZES, comparable  # noqa: E402
from sides import RATE, Served, Side, ratios  # noqa: E402

GIB = 2**30


def side(rate, **facts):
    return {RATE: rate, f"{RATE}_min": rate, f"{RATE}_max": rate, **facts}


def figures(ours, peers, **facts):
    """As measure() gives them; facts are of our side."""
    return {"ours": side(ours, **facts), "peers": {name: side(rate) for name, rate in peers.items()},
            "ratios": {name: {"median": ours / rate, "min": ours / rate, "max": ours / rate} for name, rate in peers.items()}}


def checks_of(name, found, every=None):
    row = next(row for row in FULL if row.name == name)
    return [check(found, every or {name: found}) for check in row.checks]


class Tables(unittest.TestCase):
    def test_a_rung_is_compared_with_the_one_measured_below_it(self):
        trials = [{"name": "baseline", "note": "", "samples_per_s": 2.0, "peak_bytes": 3 * 2**20}, {"name": "+ a", "note": "no effect"},
                  {"name": "+ b", "note": "", "samples_per_s": 3.0, "peak_bytes": 2**20}]
        self.assertEqual(tables.ladder_rows("unet", trials),
                         ["| unet | baseline | 2 |  | 3 MiB |  |", "| unet | + a | - | - | - | no effect |", "| unet | + b | 3 | 1.50 | 1 MiB |  |"])

    def test_layers_of_one_kind_are_added_up(self):
        sums = tables.grouped({"blocks.0.attn.q": [1.0, 2.0], "blocks.11.attn.q": [3.0, 4.0], "conv_down1": [5.0, 6.0]})
        self.assertEqual(sums, {"blocks.*.attn.q": 10.0, "conv_down1": 11.0})

    def test_a_row_of_the_roofline(self):
        layer = {"name": "blocks.*.attn.q", "count": 2, "flops": 8e9, "bytes": 4e6, "attainable_flops_per_s": 100e9, "bound": "compute", "mfu": 0.25,
                 "forward_seconds": 0.1, "backward_seconds": 0.3}
        lines = tables.roofline_rows({"layers": [layer, {**layer, "name": "norm", "count": 1, "flops": 0}]}, {"blocks.*.attn.q": 0.8}, batch=4)
        self.assertEqual(lines[0], "| blocks.*.attn.q (2) | 2 | 1 | 100 | compute | 10 | 20 | 25 | 800 | 400 |")
        self.assertEqual(lines[1], "| norm | 0 | 1 | 100 | compute | - | - | 25 | - | 400 |")


class Goals(unittest.TestCase):
    def test_the_best_peer_counts(self):
        peers = {"eager": 2.0, "channels_last": 2.5, "compile": 2.4}
        for ours, met in ((4.6, True), (4.4, False)):
            best = checks_of("unet_batch4_fp32", figures(ours, peers))[0]
            self.assertEqual((best.met, best.note), (met, "best: channels_last"))
            self.assertEqual(best.measured, ours / 2.5)

    def test_a_peer_that_could_not_run_is_no_peer(self):
        found = figures(4.0, {"eager": 2.0})
        found["peers"]["compile"] = {"not_measured": "no compiler"}
        found["ratios"]["compile"] = None
        self.assertTrue(checks_of("unet_batch4_fp32", found)[0].met)

    def test_nothing_measured_is_not_met_and_not_missed(self):
        found = {"ours": {"not_measured": "x"}, "peers": {"eager": side(1.0)}, "ratios": {"eager": None}}
        for name in ("unet_batch4_fp32", "unet_batch4_bf16", "unet_batch1_fp32", "vit_batch1_fp32", "vit_batch1_bf16"):
            for check in checks_of(name, found):
                self.assertIsNone(check.met, name)

    def test_the_tuned_vit_has_its_own_bound(self):
        default, tuned, _ = checks_of("vit_batch1_fp32", figures(0.24, {"eager": 0.1, "medium": 0.19, "medium_compile": 0.17}))
        self.assertTrue(default.met)
        self.assertFalse(tuned.met)
        self.assertEqual(tuned.note, "best: medium")

    def test_bf16_is_judged_where_it_pays(self):
        every = {"vit_batch1_fp32": {"ours": side(1.0)}}
        for gain, ours, met in ((1.6, 2.0, False), (1.6, 2.3, True), (1.2, 1.1, True), (1.2, 0.9, False)):
            found = figures(ours, {"eager": 1.0, "compile": 1.0}, peak_fp32_flops_per_s=1e9, peak_bf16_flops_per_s=gain * 1e9)
            check = checks_of("vit_batch1_bf16", found, every)[0]
            self.assertEqual(check.met, met, (gain, ours))

    def test_without_avx512_no_peer_multiplies_bf16(self):
        row = next(row for row in FULL if row.name == "vit_batch1_bf16")
        fp32 = next(row for row in FULL if row.name == "vit_batch1_fp32")
        for vectors, is_compared in (["avx2"], False), (["avx2", "avx512f"], True), (["avx2", "avx512f", "avx512_bf16"], True), ([], True):
            self.assertEqual(comparable(row, vectors).peers, row.peers if is_compared else {}, vectors)
            self.assertIs(comparable(fp32, vectors), fp32)

    def test_rounding_is_compared_where_tiles_gain_from_it(self):
        row, high = (next(row for row in FULL if row.name == name) for name in ("vit_batch1_medium", "vit_batch1_high"))
        self.assertNotIn("eager", row.peers, "both sides may round")
        for vectors, is_compared in (["avx2"], False), (["avx2", "avx512f"], False), (["avx2", "avx512f", "amx_bf16"], True):
            self.assertEqual(comparable(row, vectors).peers, row.peers if is_compared else {}, vectors)
            self.assertEqual(comparable(high, vectors).peers, high.peers if is_compared else {}, vectors)
        for ours, met in (1.4, True), (1.3, False):
            check = checks_of(row.name, figures(ours, {"medium": 1.0, "medium_compile": 0.9}), {})[0]
            self.assertEqual(check.met, met)

    def test_memory_of_the_unet_leaves_out_what_must_be(self):
        parameters = 100_000_000
        facts = {"resident_before_model_bytes": GIB, "parameters": parameters}
        found = figures(4.0, {"eager": 2.0}, resident_peak_bytes=GIB + ADAM_BYTES * parameters + 5 * GIB, **facts)
        for eager, met in ((9, True), (8, False)):
            found["peers"]["eager"].update(facts, resident_peak_bytes=GIB + ADAM_BYTES * parameters + eager * GIB)
            check = checks_of("unet_batch4_fp32", found)[2]
            self.assertEqual((check.met, round(check.measured, 6)), (met, round(5 / eager, 6)))

    def test_share_of_the_peak_uses_the_best_matmul_of_the_row(self):
        ours = Side("ours")
        ours.windows = [{RATE: 2.0, "peak_fp32_flops_per_s": peak, "train_flops_per_sample": 100.0} for peak in (250.0, 300.0, 200.0)]
        found = {"ours": ours.report(), "peers": {}, "ratios": {}}
        self.assertEqual(checks_of("unet_batch4_fp32", found)[1].measured, 2.0 * 100 / 300)

    def test_ratios_are_taken_round_by_round(self):
        ours, theirs = Side("ours"), Side("theirs")
        ours.windows, theirs.windows = [{RATE: rate} for rate in (4.0, 2.0, 3.0)], [{RATE: rate} for rate in (2.0, 1.0, 1.0)]
        self.assertEqual(ratios(ours, theirs), {"median": 2.0, "min": 2.0, "max": 3.0})


class Gate(unittest.TestCase):
    """A ratio that is 10 % below what is stored fails when a second run says so too; 25 % where its rounds differ by as much."""

    FACTS = {"cpu": "this one", "threads": 2, "date": "2026-01-01", "commit": "abc"}

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        patch = mock.patch.object(stored, "FILE", pathlib.Path(folder.name) / "stored.json")
        patch.start()
        self.addCleanup(patch.stop)
        self.row = SIZES["short"].rows[0]

    def judge(self, first, second, facts=None):
        """The verdict, and how many rows the second run had."""
        every = {self.row.name: figures(first, {"eager": 1.0, "channels_last": 1.0})}
        with mock.patch.object(compare, "measure", return_value=figures(second, {"eager": 1.0, "channels_last": 1.0})) as measure, \
                mock.patch.object(compare, "say") as said:
            code = compare.gate([self.row], SIZES["short"], types.SimpleNamespace(), facts or self.FACTS, every)
        self.said = " ".join(str(call.args[0]) for call in said.call_args_list if call.args)
        return code, measure.call_count

    def test_verdicts(self):
        stored.write(self.FACTS, {self.row.name: figures(2.0, {"eager": 1.0, "channels_last": 1.0})})
        self.assertEqual(self.judge(2.1, 0.0), (0, 0))
        self.assertEqual(self.judge(1.81, 0.0), (0, 0))
        self.assertEqual(self.judge(1.79, 1.81), (0, 1))
        self.assertEqual(self.judge(1.79, 1.7), (1, 1))
        self.assertIn("1.70x over eager, stored 2.00x, in both runs", self.said)

    def test_rounds_that_differ_allow_for_more(self):
        for low, high, allowed in ((1.0, 1.0, 0.10), (0.99, 1.01, 0.10), (0.9, 1.08, 0.18), (0.5, 1.5, 0.25)):
            self.assertEqual(round(stored.may_fall({"median": 1.0, "min": low, "max": high}), 6), allowed)

    def test_a_ratio_that_is_no_longer_measured_has_fallen(self):
        stored.write(self.FACTS, {self.row.name: figures(2.0, {"eager": 1.0, "gone": 1.0})})
        self.assertEqual(self.judge(2.0, 2.0), (1, 1))
        self.assertIn("not measured over gone", self.said)

    def test_another_processor_or_other_threads_are_not_judged(self):
        stored.write(self.FACTS, {self.row.name: figures(2.0, {"eager": 1.0})})
        for other in ({"cpu": "another"}, {"threads": 4}):
            self.assertEqual(self.judge(0.1, 0.1, {**self.FACTS, **other}), (0, 0))
            self.assertIn("Nothing is stored for this processor", self.said)

    def test_what_is_not_judged_takes_one_round(self):
        words = ["--welkin", "-", "--peer_python", "-", "--sizes", "short", "--only", self.row.name, "--gate"]
        found = figures(2.0, {"eager": 1.0, "channels_last": 1.0})
        for is_stored, rounds in ((False, 1), (True, 0)):
            with mock.patch.object(compare, "measure", return_value=found) as measure, mock.patch.object(compare, "say"), \
                    mock.patch.object(compare, "machine", return_value={**self.FACTS, "vectors": ["avx512f"], "load_before": 0.0}):
                self.assertEqual(compare.main(words), 0)
            self.assertEqual(measure.call_args.args[2].rounds, rounds, is_stored)  # 0: as many as the sizes say
            stored.write(self.FACTS, {self.row.name: found})

    def test_storing_keeps_other_processors(self):
        stored.write({**self.FACTS, "cpu": "first"}, {self.row.name: figures(2.0, {"eager": 1.0})})
        stored.write(self.FACTS, {self.row.name: figures(3.0, {"eager": 1.0})})
        self.assertEqual(sorted(stored.read()), ["first", "this one"])
        self.assertEqual(stored.read()["this one"]["ratios"], {self.row.name: {"eager": 3.0}})


class BothSides(unittest.TestCase):
    def test_a_quick_comparison(self):
        """Real processes on both sides: rates, memory, equal numbers of parameters, goals."""
        with tempfile.TemporaryDirectory() as folder, mock.patch.object(compare, "say") as said:
            file = pathlib.Path(folder) / "speed.json"
            words = ["--welkin", os.environ["WELKIN_BINARY"], "--peer_python", sys.executable, "--sizes", "quick", "--threads", "1", "--json", str(file)]
            self.assertEqual(compare.main([*words, "--only", "unet_batch4_fp32", "--only", "vit_batch1_fp32", "--only", "vit_batch1_bf16"]), 0)
            result = json.loads(file.read_text())
        vectors = result["machine"]["vectors"]
        in_bf16 = set() if "avx2" in vectors and "avx512f" not in vectors else {"eager"}
        for name, peers in (("unet_batch4_fp32", {"eager", "channels_last"}), ("vit_batch1_fp32", {"eager", "medium"}), ("vit_batch1_bf16", in_bf16)):
            row = result["rows"][name]
            self.assertEqual(set(row["ratios"]), peers)
            for found in (row["ours"], *row["peers"].values()):
                self.assertNotIn("not_measured", found, name)
                self.assertEqual(found["parameters"], row["ours"]["parameters"])
                self.assertGreater(found["resident_peak_bytes"], found["resident_before_model_bytes"])
            for peer in peers & {"eager"}:
                self.assertEqual(row["ratios"][peer]["median"], row["ours"][RATE] / row["peers"][peer][RATE])
        self.assertEqual(len(result["goals"]), 7)  # where bf16 does not pay, its own is a ratio to the row in fp32
        self.assertTrue(all(goal["met"] is not None for goal in result["goals"]), result["goals"])
        self.assertIn("ours over it", " ".join(str(call.args[0]) for call in said.call_args_list if call.args))


class Commands(unittest.TestCase):
    def test_words_that_are_not_understood_are_refused_before_anything_is_built(self):
        script = SOURCE / "bench/compare"
        for words in (["--nonsense"], ["--only", "no_row"], ["--threads", "0"], ["--tables", "--store_it"]):
            done = subprocess.run([str(script), *words], capture_output=True, text=True, timeout=60)
            self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
            self.assertIn("error: ", done.stderr)
            self.assertNotIn("cmake", done.stderr)

    def test_dry_run_without_cases_verifies_nothing(self):
        with mock.patch.object(gpu, "say") as said:
            gpu.main(["--welkin", "welkin", "--peer_python", "python3", "--json", "out.json", "--dry_run"])
        self.assertNotIn("None", "\n".join(call.args[0] for call in said.call_args_list))

    def test_dry_run_of_the_gpu_names_every_part(self):
        with mock.patch.object(gpu, "say") as said:
            self.assertEqual(gpu.main(["--welkin", "welkin", "--peer_python", "python3", "--cases", "cases", "--json", "out.json", "--dry_run"]), 0)
        text = "\n".join(call.args[0] for call in said.call_args_list)
        for part in ("verify --case cases --device cuda", "compute-sanitizer --tool memcheck", "--mode synthetic", "--mode full", "--config vit_wide_gpu", "--compile",
                     "--precision bf16 --device cuda"):
            self.assertIn(part, text)
        full = {words[words.index("--config") + 1]: line for line in text.splitlines() if "full" in (words := line.split())}
        self.assertIn("--resident device", full["unet_gpu"])
        for preset in ("vit_gpu", "vit_wide_gpu"):
            self.assertIn("--num_data_workers 8", full[preset])


class Gpu(unittest.TestCase):
    """bench/gpu.sh on a machine where this and that is missing: every part is tried, and the file is there after each."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.json = self.folder / "gpu.json"
        for patch in (mock.patch.object(gpu, "say"), mock.patch.object(compare, "say")):
            patch.start()
            self.addCleanup(patch.stop)

    def run_gpu(self, *words, welkin="/no/welkin"):
        code = gpu.main(["--welkin", welkin, "--peer_python", "/no/python3", "--cases", "cases", "--json", str(self.json), *words])
        return code, json.loads(self.json.read_text())

    def test_where_nothing_runs_everything_is_named(self):
        code, result = self.run_gpu()
        self.assertEqual(code, 1)
        self.assertEqual(result["verify"]["exit_code"], 127)
        self.assertEqual([done["exit_code"] for done in result["graph_equals_eager"]], [127] * 6)
        self.assertEqual([done["exit_code"] for done in result["sanitizer"]], [127] * 6)
        self.assertEqual(set(result["rows"]), {"unet", "vit", "vit_wide"})
        for row in result["rows"].values():
            for found in (row["ours"], row["full"], row["graph"], *row["peers"].values()):
                self.assertIn("No such file", found["not_measured"])
        self.assertEqual(len(result["goals"]), 18)
        self.assertTrue(all(goal["met"] is None for goal in result["goals"]))

    def test_a_part_that_breaks_is_kept_with_its_reason_and_the_rest_goes_on(self):
        seen = []

        def race(sides, *_):
            seen.append(json.loads(self.json.read_text()) if self.json.exists() else {})
            if len(seen) == 1:
                raise RuntimeError("surprise")
        with mock.patch.object(gpu, "race", race):
            code, result = self.run_gpu()
        self.assertEqual((code, result["failed"]), (1, {"unet": "RuntimeError: surprise"}))
        self.assertEqual(set(result["rows"]), {"vit", "vit_wide"})
        self.assertIn("verify", seen[0])
        self.assertIn("surprise", seen[1]["failed"]["unet"])
        self.assertIn("vit", seen[2]["rows"])
        _, result = self.run_gpu("--only", "unet")
        self.assertEqual((result["failed"], "unet" in result["rows"]), ({}, True))

    def test_a_part_alone_is_added_to_what_is_there(self):
        self.run_gpu("--only", "vit")
        first = json.loads(self.json.read_text())
        self.assertEqual((set(first["rows"]), "sanitizer" in first), ({"vit"}, False))
        _, result = self.run_gpu("--only", "unet", "--only", "vit", "--only", "sanitizer")
        self.assertEqual((set(result["rows"]), len(result["sanitizer"]), len(result["goals"])), ({"vit", "unet"}, 6, 12))

    def test_what_does_not_fit_the_time_is_left_out(self):
        code, result = self.run_gpu("--minutes", "0")
        self.assertEqual((code, result["left_out"]), (1, gpu.PARTS))

    def test_a_process_that_hangs_is_ended(self):
        program = self.folder / "welkin"
        program.write_text("#!/bin/sh\nexec sleep 60\n")
        program.chmod(0o755)
        side = gpu.Welkin(str(program), "unet_quick", 1, "fp32", 0, limit_s=0.2)
        side.measure(0.1)
        self.assertEqual(side.report(), {"not_measured": "no answer within 0.2 s"})
        peer = gpu.Peer("eager", str(program), [], 1, 1, limit_s=0.2)
        peer.start()
        self.assertEqual(peer.failure, "no answer within 0.2 s")
        self.assertIsNotNone(peer.process.poll())

    def test_the_memory_of_steps_is_judged_against_eager(self):
        def judged(ours, eager):
            return gpu.memory_of_steps({"ours": {"step_tensors_peak_bytes": ours, "peak_device_bytes": 500}, "peers": {"eager": {"step_tensors_peak_bytes": eager}}}, {})
        self.assertEqual([(check.measured, check.met) for check in (judged(85, 100), judged(86, 100))], [(0.85, True), (0.86, False)])
        self.assertIsNone(gpu.memory_of_steps({"ours": {}, "peers": {}}, {}).met)

    def test_processes_that_stay_measure_in_turns(self):
        """A row as on a GPU, of small models on a CPU: one start of each process, whatever the number of rounds."""
        row = gpu.Row("unet", "unet", 2, "fp32", {"eager": []}, gpu.goals(1, 2))
        arguments = types.SimpleNamespace(welkin=os.environ["WELKIN_BINARY"], peer_python=sys.executable, json=self.json)
        for patch in (mock.patch.object(gpu, "DEVICE", ["--device", "cpu"]), mock.patch.object(gpu, "WARMUP_SECONDS", 0.01), mock.patch.object(gpu, "SECONDS", 0.05),
                      mock.patch.object(gpu, "WARMUP_STEPS", 1), mock.patch.dict(gpu.READING, {"unet": ["--num_data_workers", "1"]}),
                      mock.patch.dict(gpu.SHAPES_ON_GPU, {"unet": gpu.SHAPES["unet_quick"]}), mock.patch.object(gpu, "PRESET", "{}_quick")):
            patch.start()
            self.addCleanup(patch.stop)
        found = gpu.run_row(row, arguments, None)
        for figures in (found["ours"], found["full"], found["peers"]["eager"]):
            self.assertNotIn("not_measured", figures)
            self.assertEqual(len(figures[f"{RATE}_windows"]), gpu.ROUNDS)
            self.assertGreater(figures["start_to_ready_s"], 0)
            self.assertEqual(figures["parameters"], found["ours"]["parameters"])
            self.assertGreater(figures["resident_peak_bytes"], 0)
        self.assertIn("--cuda_graph", found["graph"]["not_measured"])
        self.assertGreater(found["full_over_synthetic"], 0)
        self.assertGreater(found["ratios"]["eager"]["median"], 0)
        self.assertIsNone(found["graph_over_synthetic"])

    def test_peers_compile_beside_the_parts_that_measure_no_time(self):
        program, seen = self.folder / "python3", self.folder / "seen"
        program.write_text(f'#!/bin/sh\necho "$*" >> {seen}\ncase "$*" in *wide*) exec sleep 600 ;; esac\n')
        program.chmod(0o755)
        wide = [row for row in gpu.ROWS if row.name == "vit_wide"][0]
        arguments = types.SimpleNamespace(welkin="/no/welkin", peer_python=str(program), json=self.json)
        rows = [gpu.ROWS[0], gpu.dataclasses.replace(wide, peers={"compile": ["--compile", "wide"]})]
        compilers = gpu.Compilers(rows, arguments)
        self.assertEqual(len(compilers.processes), 2, "of the peers that compile alone")
        processes = list(compilers.processes)
        deadline = gpu.time.monotonic() + 60
        while (processes[0].poll() is None or "wide" not in (seen.read_text() if seen.exists() else "")) and gpu.time.monotonic() < deadline:
            gpu.time.sleep(0.01)
        compilers.wait(gpu.time.monotonic() + 1)
        self.assertEqual([process.poll() for process in processes], [0, -9])
        self.assertEqual(seen.read_text().count("--compile"), 2)

    def test_a_served_process_that_breaks_off_says_why(self):
        side = Served("welkin", [os.environ["WELKIN_BINARY"], "bench", "--yaml_config", "/no/file.yaml", "--mode", "synthetic"])
        gpu.race([side], 2, 0.1)
        self.assertIn("/no/file.yaml", side.report()["not_measured"])

    def test_no_round_begins_after_the_time(self):
        class Clocked(Side):
            def window(self, seconds):
                return {RATE: 1.0}
        side = Clocked("ours")
        gpu.race([side], 3, 0.1, until=0)
        self.assertEqual(len(side.windows), 1)
        gpu.race([side], 3, 0.1)
        self.assertEqual(len(side.windows), 4)

    def test_the_sanitizer_looks_at_our_kernels_where_it_knows_how(self):
        self.assertEqual(gpu.only_our_kernels("  --kernel-name arg  which kernels\n  --kernel-name-exclude arg"), ["--kernel-name", "kns=welkin"])
        self.assertEqual(gpu.only_our_kernels("  --kernel-regex-exclude arg\n  --kernel-regex arg"), ["--kernel-regex", "kns=welkin"])
        self.assertEqual(gpu.only_our_kernels("  --kernel-regex-exclude arg"), [])
        self.assertEqual(gpu.only_our_kernels("No such file"), [])


if __name__ == "__main__":
    unittest.main()
