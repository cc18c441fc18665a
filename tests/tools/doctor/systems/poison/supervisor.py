"""Keeps a program running: supervisor.py PROGRAM. It restarts the program half a second after its end."""
import subprocess
import sys
import time

while True:
    subprocess.run(sys.argv[1:])
    time.sleep(0.5)
