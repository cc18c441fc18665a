"""Takes snapshots of a process: snapshots.py PID. The process stands still for 1.5 of every 4 seconds."""
import os
import signal
import sys
import time

server = int(sys.argv[1])
while True:
    os.kill(server, signal.SIGSTOP)
    time.sleep(1.5)
    os.kill(server, signal.SIGCONT)
    time.sleep(2.5)
