#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The launchers that users have, as Debian and the torch wheel ship them: Open MPI, torchrun, and Slurm with three nodes on this host. A run
that they start equals the one that `welkin launch` starts, also where Slurm loses a node of an elastic job that has a spare one."""
import importlib.util
import json
import os
import pathlib
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from ranks_case import (BINARY, DONE, UNET, VIT, RanksCase, checkpoints, clean_environment, free_port, log_text, losses,  # noqa: E402
                        run_folder)

from elastic_test import EQUAL, YAML, curve, events  # noqa: E402

SOURCE = pathlib.Path(os.environ["WELKIN_SOURCE_DIR"])
SPARE = re.compile(r"rank (\d) on node \1 is spare")
SPLIT_MODELS = {"pipeline": (VIT, ("--pipeline_parallel", "2", "--micro_batch_size", "2")), "spatial": (UNET, ("--spatial", "2x1x1"))}


def missing(*programs):
    absent = [name for name in programs if shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin") is None]
    return f"not installed: {', '.join(absent)}" if absent else None


def needs_slurm(test):
    for reason in (missing("slurmctld", "slurmd", "munged", "srun"), None if os.geteuid() == 0 else "slurmd wants to be root"):
        test = unittest.skipIf(reason, reason)(test)
    return test


class Slurm:
    """munged, slurmctld and three slurmd of this host, in a folder of their own, ended by stop(). Seconds that a credential lives and that a node may
    not answer: a node under load takes some of either."""
    NODES = ("n1", "n2", "n3")

    def __init__(self, folder, credential_s=60, silence_s=60):
        self.folder, self.processes, self.daemons = folder, [], {}
        (folder / "state").mkdir()
        host, port = socket.gethostname().split(".")[0], free_port()
        key = folder / "munge.key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o400)
        nodes = "\n".join(f"NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={free_port()} CPUs={os.cpu_count()}" for name in self.NODES)
        (folder / "slurm.conf").write_text(f"""ClusterName=test
SlurmctldHost={host}(127.0.0.1)
AuthType=auth/munge
AuthInfo=socket={folder}/munge.sock,cred_expire={credential_s}
CredType=cred/munge
SlurmUser=root
SlurmctldPort={port}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool.%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.%n.pid
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
SlurmdTimeout={silence_s}
SchedulerParameters=sched_interval=1,batch_sched_delay=0
{nodes}
PartitionName=p Nodes={",".join(self.NODES)} Default=YES MaxTime=INFINITE State=UP OverSubscribe=YES
""")
        self.start("/usr/sbin/munged", "--force", "--foreground", f"--key-file={key}", f"--socket={folder}/munge.sock",
                   f"--pid-file={folder}/munge.pid", f"--log-file={folder}/munge.log", f"--seed-file={folder}/munge.seed")
        deadline = time.monotonic() + 60
        while not (folder / "munge.sock").exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        self.start("/usr/sbin/slurmctld", "-D", "-f", f"{folder}/slurm.conf")
        for name in self.NODES:
            self.daemons[name] = self.start("/usr/sbin/slurmd", "-D", "-N", name, "-f", f"{folder}/slurm.conf")

    def environment(self, **more):
        return clean_environment(SLURM_CONF=f"{self.folder}/slurm.conf", **more)

    def start(self, *command):
        log = open(self.folder / f"{pathlib.Path(command[0]).name}.log", "a")
        self.processes.append(subprocess.Popen(command, stdout=log, stderr=log, env=self.environment(), start_new_session=True))
        log.close()
        return self.processes[-1]

    def lose_node(self, number):
        """Kills the node's daemon and all that it runs of jobs, as where the power is cut."""
        self.daemons[self.NODES[number]].kill()
        for place in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                variables = (place / "environ").read_bytes().split(b"\0")
                step = (place / "cmdline").read_bytes().startswith(b"slurmstepd") and f"SLURMD_NODENAME={self.NODES[number]}".encode() in variables
                if step or {f"SLURM_CONF={self.folder}/slurm.conf".encode(), f"SLURM_NODEID={number}".encode()} <= set(variables):
                    os.kill(int(place.name), signal.SIGKILL)
            except OSError:
                pass  # it has gone

    def run(self, *command, limit_s=90, **more):
        return subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=limit_s, env=self.environment(**more))

    def wait_idle(self):
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            if self.run("sinfo", "-h", "-o", "%D %t").stdout.split() == [str(len(self.NODES)), "idle"]:
                return
            time.sleep(0.2)
        raise RuntimeError("\n".join(path.read_text() for path in self.folder.glob("*.log")))

    def stop(self):
        for process in reversed(self.processes):
            process.terminate()
        for process in self.processes:
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


class RealLaunchers(RanksCase):
    def setUp(self):
        super().setUp()
        self.yaml = self.write(VIT)
        self.expected = self.folder / "expected"
        self.run_ranks(2, self.yaml, self.expected)

    def check(self, root, launcher):
        self.assertEqual(losses(root), losses(self.expected))
        self.assertEqual(run_folder(root).parent.name, "2GPU")
        self.assertIn(f"from {launcher}", log_text(root))

    def check_split_models(self, launcher, run):
        """Ranks that share a model find each other as replicas do: `run` starts two with the words of `train` and gives what they said."""
        for name, (text, flags) in SPLIT_MODELS.items():
            yaml = self.write(text, f"{name}.yaml")
            expected, root = self.folder / f"{name}-expected", self.folder / f"{name}-{launcher.split()[0]}"
            self.run_ranks(2, yaml, expected, *flags)
            done = run(self.train_arguments(yaml, root, *flags))
            self.assertEqual(done.returncode, DONE, done.stderr[-3000:])
            self.assertEqual(losses(root), losses(expected), name)
            self.assertIn(f"from {launcher}", log_text(root))

    @unittest.skipIf(missing("mpirun"), missing("mpirun"))
    def test_open_mpi(self):
        root = self.folder / "root"
        command = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "2", BINARY, "--bind", "off", *self.train_arguments(self.yaml, root)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=clean_environment(MASTER_PORT=free_port()))
        self.assertEqual(done.returncode, DONE, done.stderr)
        self.check(root, "Open MPI")

    @unittest.skipIf(importlib.util.find_spec("torch") is None, "the tests' python has no torch")
    def test_torchrun(self):
        root = self.folder / "root"
        done = self.torchrun(self.train_arguments(self.yaml, root))
        self.assertEqual(done.returncode, DONE, done.stderr[-3000:])
        self.check(root, "torchrun")
        self.check_split_models("torchrun", self.torchrun)

    @unittest.skipIf(importlib.util.find_spec("torch") is None, "the tests' python has no torch")
    def test_torchrun_starts_a_lost_rank_again(self):
        root = self.folder / "root"
        faults = ("--resume", "--checkpoint_interval", "2", "--inject", "kill:step=4,rank=1,phase=forward")
        done = self.torchrun(self.train_arguments(self.yaml, root, *faults), "--max_restarts", "1")
        self.assertEqual(done.returncode, DONE, done.stderr[-3000:])
        self.assertRegex(log_text(root), r"Resumed at step [23] from \S+step_[23]")  # by the interval, or the best after an epoch
        self.assertEqual(losses(root)[-2:], losses(self.expected)[-2:])

    def torchrun(self, arguments, *options):
        command = [sys.executable, "-m", "torch.distributed.run", *options, "--nproc_per_node", "2", "--master_port", str(free_port()), "--no_python", BINARY,
                   "--bind", "off", *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=180, env=clean_environment())

    def slurm(self, **limits):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        slurm = Slurm(pathlib.Path(folder.name), **limits)
        self.addCleanup(slurm.stop)
        slurm.wait_idle()
        return slurm

    @needs_slurm
    def test_slurm(self):
        slurm = self.slurm()
        self.check_srun(slurm)
        self.check_split_models("Slurm", lambda arguments: self.srun(slurm, arguments))
        self.check_sbatch(slurm)
        self.check_shipped_script(slurm)
        self.check_collectives_script(slurm)

    @needs_slurm
    def test_slurm_continues_a_job_until_it_is_done(self):
        self.check_requeue(self.slurm(credential_s=20))

    @needs_slurm
    def test_slurm_loses_a_node_of_an_elastic_job(self):
        self.check_spare_node(self.slurm(silence_s=20))

    # The two nodes are this host: their names lead nowhere, so the address of the first is given.
    def check_srun(self, slurm):
        root = self.folder / "srun"
        done = self.srun(slurm, self.train_arguments(self.yaml, root))
        self.assertEqual(done.returncode, DONE, done.stderr)
        self.check(root, "Slurm")
        self.assertIn("Ranks: 2 on 2 node(s) from Slurm", log_text(root))

    def srun(self, slurm, arguments):
        return slurm.run("srun", "-N2", "-n2", BINARY, "--bind", "off", *arguments, MASTER_ADDR="127.0.0.1", MASTER_PORT=free_port())

    def check_sbatch(self, slurm):
        root = self.folder / "sbatch"
        script = self.folder / "job.sh"
        script.write_text(subprocess.run([BINARY, "launch", "--sbatch", "-n", "1", "--nnodes", "2", "--bind", "off", "--batch", "time=00:05:00", "--",
                                          *self.train_arguments(self.yaml, root)], capture_output=True, text=True, check=True).stdout)
        tested = slurm.run("sbatch", "--test-only", script)
        self.assertEqual(tested.returncode, 0, tested.stderr)
        done = slurm.run("sbatch", "--wait", f"--output={self.folder}/job.txt", script, MASTER_ADDR="127.0.0.1", MASTER_PORT=free_port())
        self.assertEqual(done.returncode, DONE, done.stderr + (self.folder / "job.txt").read_text())
        self.check(root, "Slurm")

    def check_shipped_script(self, slurm):
        root = self.folder / "shipped"
        script = SOURCE / "scripts/slurm/submit_train.sh"
        tested = slurm.run("sbatch", "--test-only", "--ntasks-per-node=1", "--cpus-per-task=1", script, "--config", "short")
        self.assertEqual(tested.returncode, 0, tested.stderr)
        done = slurm.run("sbatch", "--wait", "--nodes=2", "--ntasks-per-node=1", "--cpus-per-task=1", f"--output={self.folder}/shipped.txt", script,
                         *self.train_arguments(self.yaml, root)[1:], MASTER_ADDR="127.0.0.1", MASTER_PORT=free_port(), WELKIN=BINARY, WELKIN_BIND="off")
        self.assertEqual(done.returncode, DONE, done.stderr + (self.folder / "shipped.txt").read_text())
        self.check(root, "Slurm")
        exported = slurm.run("srun", "-N2", "-n2", "bash", "-c", f". {SOURCE}/scripts/slurm/export_DDP_vars.sh; echo $RANK $LOCAL_RANK $WORLD_SIZE $MASTER_PORT")
        self.assertEqual(sorted(exported.stdout.split("\n")[:2]), ["0 0 2 29500", "1 0 2 29500"])

    def check_collectives_script(self, slurm):
        script = SOURCE / "scripts/slurm/bench_collectives.sh"
        done = slurm.run("sbatch", "--wait", "--parsable", "--nodes=2", "--ntasks-per-node=1", "--cpus-per-task=1", f"--chdir={self.folder}",
                         f"--output={self.folder}/collectives.txt", script, "--sizes", "4096", "65536", "--seconds", "0.01",
                         MASTER_ADDR="127.0.0.1", MASTER_PORT=free_port(), WELKIN=BINARY, WELKIN_BIND="off")
        said = (self.folder / "collectives.txt").read_text()
        self.assertEqual(done.returncode, DONE, done.stderr + said)
        calibration = json.loads((self.folder / f"collectives-{done.stdout.strip()}.json").read_text())
        self.assertEqual({(row["axis"], row["ranks"]) for row in calibration["calibration"]}, {("dp", 2)})
        self.assertIn("send_receive", {row["collective"] for row in calibration["calibration"]})

    # A job whose time is less than half of what it needs continues itself until it is done, with what the margin leaves of the shortest
    # limit that Slurm has, and equals a run that was never cut. A queue puts it off for as long as its credential lives, here 20 seconds.
    # Steps that wait decide how long it takes, and not the load; a slot holds a start under load, for which 19 seconds were seen.
    def check_requeue(self, slurm):
        steps, slot = 100, 28
        flags = ("--checkpoint_interval", "10", "--num_iters", str(steps))
        self.run_ranks(0, self.yaml, self.folder / "uncut", *flags)
        root = self.folder / "requeued"
        script = self.folder / "requeue.sh"
        waits = f"slow:step=1,steps={steps},seconds={2.2 * slot / steps}"
        train = shlex.join([BINARY, *self.train_arguments(self.yaml, root, *flags, "--inject", waits, "--resume", "--requeue",
                                                          "--time_limit_margin", 59 - slot)])
        script.write_text(f"#!/bin/bash\n{train}\necho ended with $?\n")
        sent = slurm.run("sbatch", "--parsable", "--requeue", "--open-mode=append", "--time=1", f"--output={self.folder}/requeue.txt", script)
        self.assertEqual(sent.returncode, DONE, sent.stderr)
        deadline = time.monotonic() + 600
        while slurm.run("squeue", "--noheader", f"--job={sent.stdout.strip()}").stdout.strip() and time.monotonic() < deadline:
            time.sleep(0.5)
        log = (self.folder / "requeue.txt").read_text()
        self.assertGreaterEqual(log.count(f"Queueing the job again with: scontrol requeue {sent.stdout.strip()}"), 2, log)
        self.assertEqual(log.count("DONE ---- rank 0"), 1, log)
        self.assertEqual(newest_files(root), newest_files(self.folder / "uncut"))

    # Two ranks on three nodes. One with a rank is lost: the spare one takes its place, and the curve is that of one process.
    # The first node serves the board, so it stays; whether it is spare itself is a matter of who came last.
    def check_spare_node(self, slurm):
        steps, root = 80, self.folder / "spare"
        yaml = self.write(YAML.format(steps=steps), "spare.yaml")
        train = shlex.join([BINARY, "launch", "-n", "1", "--nnodes", "3", "--rdzv", f"127.0.0.1:{free_port()}", "--elastic", "1:2", "--bind", "off"])
        flags = (*EQUAL, "--inject", "slow:step=6,rank=0,steps=40,seconds=1")  # beyond the third start, and until Slurm misses the node
        script = self.folder / "spare.sh"
        script.write_text(f"""#!/bin/bash
#SBATCH --nodes=3 --ntasks-per-node=1 --no-kill
export WELKIN_JOB_SECRET={os.urandom(16).hex()}
srun --no-kill bash -c '{train} --node_rank $SLURM_NODEID -- {shlex.join(self.train_arguments(yaml, root, *flags))}'
""")
        sent = slurm.run("sbatch", "--parsable", f"--output={self.folder}/spare.txt", script)
        self.assertEqual(sent.returncode, DONE, sent.stderr)
        deadline = time.monotonic() + 600
        said = lambda: (self.folder / "spare.txt").read_text() if (self.folder / "spare.txt").exists() else ""  # noqa: E731
        while time.monotonic() < deadline and not (list(root.glob("run/*/00/out.log")) and len(curve(root)[0]) >= 5 and SPARE.search(said())):
            time.sleep(0.1)
        self.assertRegex(said(), SPARE)
        spare = int(SPARE.search(said()).group(1))
        slurm.lose_node(2 if spare == 1 else 1)
        while time.monotonic() < deadline and slurm.run("squeue", "--noheader", f"--job={sent.stdout.strip()}").stdout.strip():
            time.sleep(0.5)
        (event,) = events(root, "round")
        self.assertEqual((event["round"], event["ranks"], event["of"]), (2, 2, 2), said())
        whole = self.folder / "whole"
        self.run_ranks(0, yaml, whole, *EQUAL)
        self.assertEqual(curve(root), curve(whole), said())
        self.assertEqual(len(curve(root)[0]), steps)


def newest_files(root):
    folder = run_folder(root) / "checkpoints" / f"step_{checkpoints(root)[-1]}"
    return folder.name, {path.name: path.read_bytes() for path in sorted(folder.glob("*.safetensors"))}


if __name__ == "__main__":
    unittest.main()
