"""Gives divisions to workers: jobs.py JOB... A job whose worker leaves without an answer goes to the next worker."""
import itertools
import sys
import time

import zmq

router = zmq.Context.instance().socket(zmq.ROUTER)
router.bind("tcp://127.0.0.1:5624")
jobs = itertools.cycle(sys.argv[1:])
job = next(jobs)
done = 0
while True:
    worker, answer = router.recv_multipart()
    if answer != b"ready":
        done += 1
        job = next(jobs)
        if done == 10:
            print("working", flush=True)
        time.sleep(0.1)
    router.send_multipart([worker, job.encode()])
