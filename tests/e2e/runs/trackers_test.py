# SPDX-License-Identifier: Apache-2.0
"""What a run leaves for experiment trackers, read by wandb and MLflow themselves: configuration, every scalar of the event files, state."""
import json
import pathlib
import re
import subprocess
import sys
import unittest

import numpy as np

from bad_input_case import BINARY, DONE, FIELDS, USAGE, BadInputCase
from read_events import read as read_events

READER = pathlib.Path(sys.prefix) / "trackers/bin/python3"
READ_WANDB = """
import json, sys, wandb
wandb._set_internal_process()
from wandb.proto.wandb_internal_pb2 import Record
from wandb.sdk.internal.datastore import DataStore
store, found = DataStore(), {"history": [], "kinds": []}
store.open_for_scan(sys.argv[1])
while (data := store.scan_data()) is not None:
    record = Record()
    record.ParseFromString(data)
    kind = record.WhichOneof("record_type")
    found["kinds"].append(kind)
    if kind == "run":
        found["run"] = {"id": record.run.run_id, "name": record.run.display_name, "project": record.run.project, "start": record.run.start_time.ToMilliseconds(),
                        "config": {item.key: json.loads(item.value_json) for item in record.run.config.update}}
    if kind == "history":
        found["history"].append([record.history.step.num, {item.nested_key[0]: json.loads(item.value_json) for item in record.history.item}])
    if kind == "summary":
        found["summary"] = {item.nested_key[0]: json.loads(item.value_json) for item in record.summary.update}
    if kind == "exit":
        found["exit"] = record.exit.exit_code
print(json.dumps(found))
"""
READ_MLFLOW = """
import json, sys
from mlflow.store.tracking.file_store import FileStore
store = FileStore(sys.argv[1])
experiment = store.get_experiment_by_name("welkin")
runs = store.search_runs([experiment.experiment_id], "", 1)
print(json.dumps([{"name": run.info.run_name, "status": run.info.status, "params": run.data.params,
                   "metrics": {tag: [[m.step, m.value] for m in store.get_metric_history(run.info.run_id, tag)] for tag in run.data.metrics}} for run in runs]))
"""


@unittest.skipUnless(READER.exists(), "the trackers are not installed: tests/requirements-trackers.txt")
class Trackers(BadInputCase):
    def setUp(self):
        super().setUp()
        self.make_fields()

    def read(self, program, path):
        done = subprocess.run([READER, "-c", program, path], capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout.splitlines()[-1])


    def check_scalars(self, got, name_of=str):
        """Event files hold float32, which the others write in as many digits as it needs."""
        wanted = {name_of(tag): points for tag, points in read_events(str(self.run_folder / "logs"))["scalars"].items()}
        self.assertEqual(sorted(got), sorted(wanted))
        for tag, points in wanted.items():
            self.assertEqual([(step, np.float32(value)) for step, value in got[tag]], [(step, np.float32(value)) for step, value in points])

    def test_each_reads_the_run(self):
        done = self.train(FIELDS, "--track", "mlflow,wandb")
        self.assertEqual(done.returncode, DONE, done.stderr)
        logs = self.run_folder.parents[2]
        name = str(self.run_folder.relative_to(logs))
        run, = self.read(READ_MLFLOW, logs / "mlruns")
        self.assertEqual((run["name"], run["status"], run["params"]["embed_dim"]), (name, "FINISHED", str(FIELDS["embed_dim"])))
        self.check_scalars(run["metrics"], lambda tag: re.sub(r"[^\w. :/-]", "_", tag))

        folder, = (logs / "wandb").glob("offline-run-*")
        file, = folder.glob("run-*.wandb")
        found = self.read(READ_WANDB, file)
        self.assertEqual(found["kinds"], ["header", "run", *["history"] * len(found["history"]), "summary", "exit"])
        self.assertEqual((found["run"]["name"], found["run"]["project"], found["exit"]), (name, "welkin", 0))
        self.assertEqual(f"run-{found['run']['id']}.wandb", file.name)
        self.assertEqual(found["run"]["config"]["embed_dim"], FIELDS["embed_dim"])
        steps = [step for step, _ in found["history"]]
        self.assertEqual(steps, sorted(set(steps)))
        by_tag = {}
        for step, values in ((step, dict(values)) for step, values in found["history"]):
            self.assertEqual(values.pop("_step"), step)
            self.assertGreaterEqual(values.pop("_runtime"), 0)
            self.assertGreaterEqual(1000 * values.pop("_timestamp"), found["run"]["start"])
            for tag, value in values.items():
                by_tag.setdefault(tag, []).append([step, value])
        self.check_scalars(by_tag)
        self.assertEqual(found["summary"], {tag: points[-1][1] for tag, points in by_tag.items()})

        again = self.root / "again"
        done = self.run_command([BINARY, "report", self.run_folder, "--output", self.root / "report.html", "--mlflow", again / "mlruns", "--wandb", again / "wandb"])
        self.assertEqual(done.returncode, DONE, done.stderr)
        self.assertEqual(self.read(READ_MLFLOW, again / "mlruns")[0]["metrics"], run["metrics"])
        self.assertEqual(self.read(READ_WANDB, next((again / "wandb").glob("*/run-*.wandb")))["history"], found["history"])

    def test_what_cannot_be_written_costs_nothing(self):
        logs = self.run_folder.parents[2]
        logs.mkdir(parents=True, exist_ok=True)
        (logs / "wandb").write_text("in the way")
        done = self.train(FIELDS, "--track", "wandb")
        self.assertEqual(done.returncode, DONE, done.stderr)
        self.assertIn("Not tracked for wandb: ", (self.run_folder / "out.log").read_text())
        self.assert_refused(self.train(FIELDS, "--track", "tensorboard"), USAGE, "unknown tracker: track=[tensorboard]")


if __name__ == "__main__":
    unittest.main()
