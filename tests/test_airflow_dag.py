"""The DAG of the guide logtool-fleets; `make airflow` runs it in Airflow."""

import ast
import json
import re
from pathlib import PurePosixPath

from airflow_dag import NOTEBOOK, block


def test_the_dag_gives_the_notebook_every_variable_that_it_reads():
    tree = ast.parse(block())
    (given,) = (ast.literal_eval(one.value) for one in ast.walk(tree)
                if isinstance(one, ast.keyword) and one.arg == "env")  # fmt: skip
    cells = json.loads(NOTEBOOK.read_text("utf-8"))["cells"]
    code = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
    assert set(given) == set(re.findall(r'os\.environ\["(\w+)"\]', code)) != set()


def test_the_dag_runs_the_notebook_of_the_guide():
    returned = [one.value for one in ast.walk(ast.parse(block())) if isinstance(one, ast.Return)]
    (command,) = (str(one.value) for one in returned if isinstance(one, ast.Constant))
    program, verb, path = command.split()
    assert (program, verb, PurePosixPath(path).name) == ("jupyter", "execute", NOTEBOOK.name)
    # Airflow runs a command in an empty folder.
    assert PurePosixPath(path).is_absolute()
