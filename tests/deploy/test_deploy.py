"""What stands in deploy/: it names what a running service has, and the alerts are raised when they must be."""

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

sys.path.append(str(Path(__file__).parents[1] / "serve"))
from service import client_of, digits, predict

import ncttt
from ncttt.cli import main

TOP = Path(__file__).parents[2]
DEPLOY = TOP / "deploy"
OUTSIDE = {"instance", "job"}  # labels that Prometheus adds; `replica` comes from --engine ray
WORDS = re.compile(r"\b(ncttt_\w+|process_\w+)(?:\{([^}]*)\})?")
GROUPED = re.compile(r"\b(?:by|on|ignoring|without) \(([\w, ]+)\)")
promtool = pytest.mark.promtool


def alerts() -> list[dict]:
    return yaml.safe_load((DEPLOY / "alerts.yaml").read_text())["groups"][0]["rules"]


def panels() -> list[dict]:
    return json.loads((DEPLOY / "grafana.json").read_text())["panels"]


def expressions() -> dict[str, str]:
    """All that is asked of Prometheus, with what Grafana puts in filled in."""
    asked = {rule["alert"]: rule["expr"] for rule in alerts()}
    for panel in panels():
        for target in panel["targets"]:
            text = target["expr"].replace("$__rate_interval", "5m").replace("$stream", ".*")
            asked[f"{panel['title']} {target['refId']}"] = text
    return asked


@pytest.fixture(scope="module")
def series(tmp_path_factory) -> dict[str, set[str]]:
    """The metrics of a service after traffic, each with its labels."""
    with client_of(tmp_path_factory.mktemp("deploy")) as client:
        answer = predict(client, digits()[:70], "door")
        client.post("/feedback", json={"labels": [{"id": answer["predictions"][0]["id"], "label": "1"}]})
        client.post("/streams/door/reset")
        predict(client, digits()[:2], "door")
        page = client.get("/metrics").text
    found: dict[str, set[str]] = {}
    for sample in (sample for family in text_string_to_metric_families(page) for sample in family.samples):
        found.setdefault(sample.name, set()).update(sample.labels)
    return found


@pytest.mark.parametrize("name", expressions())
def test_metrics_and_labels_are_those_of_a_running_service(name, series):
    expression = expressions()[name]
    used = WORDS.findall(expression)
    if name != "NctttDown":
        assert used
    known = set(OUTSIDE)
    for metric, matchers in used:
        assert metric in series, metric
        known |= series[metric]
        named = set(re.findall(r"(\w+)\s*(?:=~|!~|!=|=)", matchers))
        assert named <= series[metric] | OUTSIDE, metric
    grouped = {label.strip() for labels in GROUPED.findall(expression) for label in labels.split(",")}
    assert grouped <= known


def test_what_serve_md_says_to_watch_is_watched():
    page = (TOP / "docs/howto/serve.md").read_text()
    table = page.partition("| metric |")[2].partition("\n\n")[0]
    told = set(re.findall(r"ncttt_\w+", table))
    watched = {metric for text in expressions().values() for metric, _ in WORDS.findall(text)}
    short = {re.sub(r"_(bucket|sum|count)$", "", metric) for metric in watched}
    assert told - {"ncttt_batch_images"} <= short


def test_each_alert_says_what_to_do():
    for rule in alerts():
        assert rule.keys() <= {"alert", "expr", "for", "labels", "annotations"}
        assert rule["annotations"].keys() == {"summary", "action"}
        assert all(text.endswith(".") for text in rule["annotations"].values())
        for verb, path in re.findall(r"(POST) (/\w+)", rule["annotations"]["action"]):
            assert path in ("/streams", "/feedback"), verb


def test_the_dashboard_has_a_place_for_each_panel():
    places = [tuple(panel["gridPos"].values()) for panel in panels()]
    assert len(set(places)) == len(places) == len({panel["id"] for panel in panels()})
    assert all(panel["title"] and panel["targets"] and panel["type"] == "timeseries" for panel in panels())
    names = {each["name"] for each in json.loads((DEPLOY / "grafana.json").read_text())["templating"]["list"]}
    assert set(re.findall(r"\$\{?(\w+)", json.dumps(panels()))) - {"__rate_interval"} <= names


def instructions() -> list[tuple[str, str]]:
    text = (DEPLOY / "Dockerfile").read_text().replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [(line.partition(" ")[0], line.partition(" ")[2]) for line in lines]


def options(capsys) -> set[str]:
    with pytest.raises(SystemExit):
        main(["serve", "--help"])
    return set(re.findall(r"--[\w-]+", capsys.readouterr().out))


def test_the_image_copies_what_there_is_and_asks_for_what_there_is(capsys):
    known = {"FROM", "ARG", "WORKDIR", "COPY", "RUN", "USER", "VOLUME", "EXPOSE", "HEALTHCHECK", "ENTRYPOINT", "CMD"}
    assert {word for word, _ in instructions()} == known
    for sources in (shlex.split(rest)[:-1] for word, rest in instructions() if word == "COPY"):
        assert all((TOP / source).exists() for source in sources)
    (start,) = [json.loads(rest) for word, rest in instructions() if word == "ENTRYPOINT"]
    assert start[:2] == ["ncttt", "serve"]
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    given = {word for word in [*start, *compose["services"]["ncttt"]["command"]] if word.startswith("--")}
    assert given <= options(capsys)
    folder = Path(start[start.index("--state") + 1])
    assert str(folder.parent) == dict(instructions())["VOLUME"]  # its lock lies beside it
    users = [rest for word, rest in instructions() if word == "USER"]
    assert users == ["ncttt"]
    assert re.search(r"^torch==2\.13\.0$", (TOP / "constraints.txt").read_text(), re.MULTILINE)
    assert any("--constraint constraints.txt" in rest for word, rest in instructions() if word == "RUN")


def test_images_are_pinned_and_their_files_are_there():
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    assert compose.keys() == {"name", "services", "volumes", "secrets"}
    images = [service["image"] for service in compose["services"].values()]
    images += [rest for word, rest in instructions() if word == "FROM"]
    assert all(re.search(r":v?\d+\.\d+\.\d+", image) for image in images)
    for service in compose["services"].values():
        assert all(port.startswith("127.0.0.1:") for port in service["ports"])
        for place in (volume.split(":")[0] for volume in service.get("volumes", [])):
            assert (DEPLOY / place).is_file() if place.startswith(".") else place in compose["volumes"]
    assert (DEPLOY / compose["services"]["ncttt"]["build"]["dockerfile"]).name == "Dockerfile"
    scraped = yaml.safe_load((DEPLOY / "prometheus.yaml").read_text())["scrape_configs"][0]
    assert scraped["static_configs"][0]["targets"] == ["ncttt:8000"]
    assert scraped["authorization"]["credentials_file"] == "/run/secrets/token"


@promtool
def test_promtool_reads_all_rules_and_expressions(tmp_path):
    rules = [{"record": f"x{number}", "expr": text} for number, text in enumerate(expressions().values())]
    (tmp_path / "all.yaml").write_text(yaml.safe_dump({"groups": [{"name": "all", "rules": rules}]}))
    for file in (DEPLOY / "alerts.yaml", tmp_path / "all.yaml"):
        run("check", "rules", str(file))


@promtool
def test_promtool_reads_the_configuration(tmp_path):
    text = (DEPLOY / "prometheus.yaml").read_text().replace("/run/secrets/token", str(tmp_path / "token"))
    (tmp_path / "token").write_text("word")
    (tmp_path / "prometheus.yaml").write_text(text)
    (tmp_path / "alerts.yaml").write_bytes((DEPLOY / "alerts.yaml").read_bytes())
    run("check", "config", str(tmp_path / "prometheus.yaml"))


@promtool
def test_alerts_are_raised_when_they_must_be_and_not_else(tmp_path):
    text = (Path(__file__).parent / "alerts_test.yaml").read_text().replace("RULES", str(DEPLOY / "alerts.yaml"))
    (tmp_path / "test.yaml").write_text(text)
    run("test", "rules", str(tmp_path / "test.yaml"))


def run(*words: str) -> None:
    done = subprocess.run(["promtool", *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_image_has_the_version_of_the_package():
    image = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]["ncttt"]["image"]
    assert image == f"ncttt:{ncttt.__version__}"
