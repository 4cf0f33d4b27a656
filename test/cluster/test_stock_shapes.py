"""The unmodified `determined` client against the HTTP server with recorded rows: the client's own classes read every answer. Needs the
wheel `determined` 0.38.1 in the interpreter that runs the tests."""

import os
import subprocess
import sys
import tempfile
import unittest

import warm_client


class StockClient(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = subprocess.Popen([os.environ["API_OVER_FAKES"]], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        cls.home = tempfile.TemporaryDirectory()
        cls.master = "http://127.0.0.1:" + cls.server.stdout.readline().strip()

    @classmethod
    def tearDownClass(cls):
        cls.server.stdin.close()
        cls.server.wait(timeout=120)
        cls.server.stdout.close()
        cls.home.cleanup()

    def det(self, *args, code=0):
        env = dict(os.environ, DET_MASTER=self.master, COLUMNS="400")
        done = warm_client.run(args, {**env, "HOME": self.home.name + "/cold"}, cold=True)
        self.assertEqual(done.returncode, code, f"det {' '.join(args)}\n{done.stdout}\n{done.stderr}")
        self.assertNotIn("Traceback", done.stderr)
        forked = warm_client.run(args, {**env, "HOME": self.home.name + "/warm"})  # as the other tests run it
        self.assertEqual((forked.returncode, forked.stdout, forked.stderr), (done.returncode, done.stdout, done.stderr))
        return done.stdout + done.stderr

    def test_verbs_that_read(self):
        for args, expected in [
            (["--help"], "run as the given user"),
            (["version"], "0.38.1"),
            (["user", "whoami"], "determined"),
            (["user", "list"], "admin"),
            (["experiment", "list", "--all"], "digits"),
            (["experiment", "describe", "7"], "digits"),
            (["experiment", "describe", "7", "--metrics"], "0.9"),
            (["experiment", "describe", "7", "--json"], "bestTrialId"),
            (["experiment", "list-trials", "7"], "COMPLETED"),
            (["experiment", "list-checkpoints", "7"], "c1"),
            (["experiment", "wait", "7"], ""),
            (["experiment", "logs", "7"], "line 3"),
            (["trial", "describe", "12"], "COMPLETED"),
            (["trial", "describe", "12", "--metrics"], "0.9"),
            (["trial", "logs", "12"], "line 2"),
            (["trial", "logs", "12", "--tail", "1"], "line 3"),
            (["trial", "logs", "12", "--follow"], "line 3"),
            (["checkpoint", "describe", "c1"], "c1"),
            (["agent", "list"], "a1"),
            (["slot", "list"], "a1"),
            (["task", "list"], ""),
            (["master", "info"], "cluster-id"),
            (["experiment", "pause", "7"], ""),
            (["experiment", "activate", "7"], ""),
            (["experiment", "cancel", "7"], ""),
            (["experiment", "kill", "7"], ""),
            (["trial", "kill", "12"], ""),
        ]:
            with self.subTest(args=args):
                self.assertIn(expected, self.det(*args))

    def test_what_is_not_there_is_said(self):
        self.assertIn("invalid int value: 'x'", self.det("trial", "logs", "x", code=2))
        self.assertIn("experiment '99' not found", self.det("experiment", "describe", "99", code=1))

    def test_creates_an_experiment(self):
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "train.py"), "w") as f:
                f.write("print(1)\n")
            config = os.path.join(folder, "config.yaml")
            with open(config, "w") as f:
                f.write("name: x\nentrypoint: python3 train.py\n")
            self.assertIn("Created experiment 7", self.det("experiment", "create", config, folder))

    def test_sdk(self):
        script = (
            "from determined.experimental import client\n"
            f"client.login({self.master!r}, 'determined', '')\n"
            "e = client.get_experiment(7)\n"
            "assert e.wait(interval=0.1).value == 'STATE_COMPLETED'\n"
            "t = client.get_trial(12)\n"
            "assert t.hparams == {'lr': 0.1}, t.hparams\n"
            "assert [m.steps_completed for m in t.iter_metrics('validation')] == [100]\n"
            "assert e.list_checkpoints()[0].uuid == 'c1'\n"
            "assert client.get_checkpoint('c1').training.trial_id == 12\n"
            "assert list(t.iter_logs())[-1].endswith('line 3\\n')\n"
            "assert [x.id for x in client.list_experiments()] == [7, 8]\n"
            "assert client.list_users()[0].username == 'admin'\n"
        )
        env = dict(os.environ, HOME=self.home.name)
        done = subprocess.run([sys.executable, "-c", script], env=env, capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    unittest.main()
