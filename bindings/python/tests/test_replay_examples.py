"""The examples replay.py and topics.py run and show what they promise."""

import unittest

import test_native_examples as examples


class ReplayExampleTest(unittest.TestCase):
    start = examples.ExampleTest.start
    run_example = examples.ExampleTest.run_example

    def test_replay(self):
        publisher = self.start("replay.py", "publish", "tcp://127.0.0.1:*", "tcp://127.0.0.1:*", "5")
        live, ring = publisher.stdout.readline().split()[1:]
        output = self.run_example("replay.py", "subscribe", live, ring).splitlines()
        self.assertEqual([int(line.split()[0]) for line in output[:-1]], list(range(15)))
        self.assertEqual(output[-1], "the end is message 15")
        self.assertEqual(len(self.run_example("replay.py", "subscribe", live, ring, "12").splitlines()), 4)
        output = self.run_example("replay.py", "watch", live, ring).splitlines()
        self.assertEqual([int(line.split()[0]) for line in output[:-1]], [12, 13, 14])

    def test_topics(self):
        station = self.start("topics.py", "station", "tcp://127.0.0.1:*")
        endpoint = station.stdout.readline().split()[1]
        output = self.run_example("topics.py", "display", endpoint, "weather.*.wind").splitlines()
        self.assertEqual([line.split()[0] for line in output], [f"weather.{town}.wind" for town in ("bern", "lima", "oslo")])


if __name__ == "__main__":
    unittest.main()
