"""What a project on GitHub needs is there, can be read, and calls what exists."""

import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
if not (ROOT / ".github").is_dir():
    pytest.skip("a source distribution has no .github", allow_module_level=True)
TEMPLATES = sorted((ROOT / ".github/ISSUE_TEMPLATE").glob("*.yml"))
JOBS = yaml.safe_load((ROOT / ".github/workflows/checks.yml").read_text())["jobs"]
COMMUNITY = ("CONTRIBUTING.md", "SECURITY.md", "CODE_OF_CONDUCT.md", ".github/pull_request_template.md")
TARGETS = set(re.findall(r"^([\w-]+(?: [\w-]+)*):(?!=)", (ROOT / "Makefile").read_text(), re.MULTILINE))
MADE = {target for line in TARGETS for target in line.split()}


def commands(job: str) -> list[str]:
    return [step["run"] for step in JOBS[job]["steps"] if "run" in step]


def test_one_job_runs_what_ci_runs():
    assert commands("everything") == [".ci/run"]
    assert (ROOT / ".ci/run").stat().st_mode & 0o111


def test_ci_and_the_workflow_call_targets_that_exist():
    called = re.findall(r"^make ([\w-]+)$", (ROOT / ".ci/run").read_text(), re.MULTILINE)
    assert {"check", "docs", "package"} <= set(called) <= MADE
    for command in commands("pythons"):
        assert command.removeprefix("make ") in MADE, command


def test_the_matrix_has_every_supported_python():
    steps = JOBS["everything"]["steps"]
    (whole,) = [step["with"]["python-version"] for step in steps if "setup-python" in step.get("uses", "")]
    assert {whole, *JOBS["pythons"]["strategy"]["matrix"]["python"]} == {"3.10", "3.11", "3.12", "3.13"}


@pytest.mark.parametrize("path", [path for path in TEMPLATES if path.stem != "config"], ids=lambda path: path.stem)
def test_a_template_of_an_issue_is_a_form(path):
    form = yaml.safe_load(path.read_text())
    assert {"name", "description", "body"} <= form.keys()
    assert all({"type", "id", "attributes"} <= part.keys() for part in form["body"])
    assert len({part["id"] for part in form["body"]}) == len(form["body"])


@pytest.mark.parametrize("name", COMMUNITY)
def test_links_and_commands_of_the_pages_for_contributors_exist(name):
    text = (ROOT / name).read_text()
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", text):
        assert (ROOT / name).parent.joinpath(target).exists(), target
    for target in re.findall(r"(?:^|`)make ([a-z-]+)", text, re.MULTILINE):
        assert target in MADE, target
