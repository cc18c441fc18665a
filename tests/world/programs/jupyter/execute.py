"""Executes a notebook: execute.py LIBRARY. Prints `ok NAME` or `not ok NAME` for each check, then `end`."""

import sys

import nbformat
from nbclient import NotebookClient

LIBRARY = sys.argv[1]

CELLS = [
    # Prints the libzmq that the kernel has loaded.
    "print(*{line.split()[-1] for line in open('/proc/self/maps') if '/libzmq' in line})",
    "for number in range(20_000):\n    print(number)",
    "import sys\nprint('to stderr', file=sys.stderr)\n6 * 7",
    "from IPython.display import HTML, display\ndisplay(HTML('x' * 1_000_000))",
    "1 / 0",
    "value = sum(range(1_000_000))\nvalue",
]


def check(name, condition):
    print("ok" if condition else "not ok", name, flush=True)


def text(outputs, stream="stdout"):
    return "".join(output.text for output in outputs if output.output_type == "stream" and output.name == stream)


notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in CELLS])
client = NotebookClient(notebook, timeout=120, kernel_name="python3", allow_errors=True)
client.execute()
library, prints, result, display, error, after = (cell.outputs for cell in notebook.cells)
check("the kernel loads only this libzmq", text(library).split() == [LIBRARY])
check("20,000 prints arrive in order", text(prints) == "".join(f"{number}\n" for number in range(20_000)))
check("standard error", text(result, "stderr") == "to stderr\n")
check("a result", result[-1].output_type == "execute_result" and result[-1].data["text/plain"] == "42")
check("a display of a megabyte", display[0].data["text/html"] == "x" * 1_000_000)
check("an error and its name", error[0].output_type == "error" and error[0].ename == "ZeroDivisionError")
check("the kernel continues after the error", after[0].data["text/plain"] == "499999500000")
print("end")
