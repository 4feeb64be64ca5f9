"""`ipamc explain`: codes, concepts, fields, verbs; a miss names what is near."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from ipamc.catalogue import catalogue
from ipamc.cli import main
from ipamc.model.cluster import Mode
from ipamc.read.kinds import KINDS
from ipamc.report.explain import Concept, concepts, fields_of
from ipamc.workspace.disk import assets, schemas
from tests.cli.test_options import EVERY

CONCEPTS = concepts(assets("rules/words"))


def explained(capsys: pytest.CaptureFixture[str], word: str, code: int = 0) -> str:
    assert main(["explain", *word.split()]) == code
    out, err = capsys.readouterr()
    return err if code else out


def test_a_concept(capsys: pytest.CaptureFixture[str]) -> None:
    found = explained(capsys, "quarantine")
    assert found.startswith("quarantine\n\nThe block of a node that left or moved is quarantined")
    assert "\n  ipamc lock CLUSTER --release NODE\n" in found
    assert "\nCodes: IPC0418, IPC0419" in found
    for other in ("Quarantined", "leaver"):
        assert explained(capsys, other) == found
    assert explained(capsys, "address space").startswith("address space\n")
    assert explained(capsys, "address-space").startswith("address space\n")


def test_a_field(capsys: pytest.CaptureFixture[str]) -> None:
    found = explained(capsys, "Cluster.spec.quarantineDays")
    assert found.startswith("Cluster.spec.quarantineDays\n  type:     integer or string\n")
    assert "\n  default:  7\n" in found
    assert "ipamc explain Cluster.spec.quarantineDays\n" in explained(capsys, "quarantinedays")
    found = explained(capsys, "Cluster.spec.unmatchedNodes")
    assert explained(capsys, "unmatchednodes") == found
    assert explained(capsys, "spec.unmatchedNodes") == found
    assert "  one of:   kubernetes, cluster-pool, multi-pool, crd\n" in explained(
        capsys, "Cluster.spec.ipam.mode"
    )
    assert "  fields:   cidrs, from, prefixLength, ranges, blockSize, follows\n" in explained(
        capsys, "IPPool.spec.ipv4"
    )


def test_several_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    """Fields of one name; and of a word that is a concept and fields, both."""
    assert explained(capsys, "blockSize").startswith("Fields:\n  ipamc explain ")
    assert "ipamc explain IPPool.spec.ipv4.blockSize\n" in explained(capsys, "blockSize")
    found = explained(capsys, "reserved")
    assert found.startswith("reserved\n\n")
    assert "\nFields:\n  ipamc explain " in found
    assert "  ipamc explain IPPool.spec.reserved\n" in found
    assert "ipamc explain IPPool.spec\n" in explained(capsys, "IPPool")


def test_a_verb_and_an_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    assert "ipamc plan: Show what a compile changes" in explained(capsys, "plan")
    assert "ipamc ci matrix --help" in explained(capsys, "ci matrix")
    assert "64: wrong usage" in explained(capsys, "64")
    assert explained(capsys, "exit codes") == explained(capsys, "exit-code")


def test_codes_as_they_are_typed(capsys: pytest.CaptureFixture[str]) -> None:
    assert len({explained(capsys, word) for word in ("IPC0207", "ipc0207", "0207", "207")}) == 1


@pytest.mark.parametrize(
    ("word", "near"),
    [
        ("quarantne", "quarantine"),
        ("IPPool.spec.nodeSelektor", "IPPool.spec.nodeSelector"),
        ("blokSize", "blockSize"),
        ("IPC0170", "did you mean IPC"),
        ("complie", "compile"),
        ("zzzzzz", "'ipamc explain concepts' words"),
    ],
)
def test_a_miss_names_near_words(word: str, near: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert near in explained(capsys, word, 64)


def test_concepts_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    found = explained(capsys, "concepts").splitlines()
    assert len(found) == len(CONCEPTS)
    assert all(len(line) <= 140 for line in found)


@pytest.mark.deep
@pytest.mark.parametrize("concept", CONCEPTS, ids=lambda concept: concept.name)
def test_a_concept_holds(concept: Concept) -> None:
    """It is short; its codes and fields exist, and its commands have the options that it names."""
    lines = concept.text.splitlines()
    assert len(lines) <= 8
    assert all(len(line) <= 120 for line in lines)
    assert set(concept.codes) <= catalogue(assets("rules")).keys()
    pages = re.findall(r"\bdocs/[\w/.-]*\w", concept.text)
    assert all((Path(__file__).parents[2] / page).exists() for page in pages), pages
    fields = fields_of(schemas())
    for command in (*concept.run, *re.findall(r"`(ipamc [^`]*)`", concept.text)):
        words = command.split()
        if words[0] == "git":
            continue
        name = next(" ".join(words[1:n]) for n in (3, 2) if " ".join(words[1:n]) in EVERY)
        options = {option for param in EVERY[name].params for option in param.opts} | {"--help"}
        assert {word for word in words if word.startswith("--")} <= options, command
        if name == "explain" and "." in words[2]:
            assert any(path.endswith(words[2]) for path in fields), command


@pytest.mark.parametrize(
    "word",
    [
        *(
            "gpu",
            "rollback",
            "roll-back",
            "uninstall",
            "metrics",
            "prometheus",
            "grafana",
            "argocd",
            "flux",
            "gitops",
        ),
        *(
            "karpenter",
            "autoscaler",
            "terraform",
            "ansible",
            "kubespray",
            "talos",
            "helm",
            "ipv6",
            "dual-stack",
            "bgp",
        ),
        *(
            "calico",
            "clustermesh",
            "runner",
            "oidc",
            "rbac",
            "netbox",
            "maxPods",
            "openshift",
            "upgrade",
            "security",
        ),
    ],
)
def test_a_word_that_people_search_for_leads_to_commands_and_a_page(
    word: str, capsys: pytest.CaptureFixture[str]
) -> None:
    found = explained(capsys, word)
    assert "\n  ipamc " in found
    assert "docs/" in found or word in {"helm", "dual-stack", "maxPods"}


def test_no_word_means_two_concepts() -> None:
    words = [word for concept in CONCEPTS for word in (concept.name, *concept.also)]
    assert all(sum(concept.is_named(word) for concept in CONCEPTS) == 1 for word in words)


def glossary() -> list[str]:
    """Return the terms of docs/glossary.md, without backticks."""
    text = (Path(__file__).parents[2] / "docs/glossary.md").read_text(encoding="utf-8")
    return [term.strip("`") for term in re.findall(r"^\| \*\*([^|]*)\*\*", text, re.MULTILINE)]


def flags() -> list[str]:
    """Return the keys of cilium-config that ipamc writes, and those of CiliumNodeConfigs."""
    schemas = Path(__file__).parents[2] / "schemas"
    found = json.loads((schemas / "cilium_config.emitted.json").read_text())
    return sorted(found["properties"]["data"]["properties"])


@pytest.mark.deep
@pytest.mark.parametrize(
    "word",
    [
        *glossary(),
        *flags(),
        *Mode,
        *(kind.name for kind in KINDS),
        *("CiliumPodIPPool", "CiliumNodeConfig", "maskSize", "mask size", "agent", "dual-stack", "helm"),
        *("adopt-pods", "greenfield", "pinning: node", "pinning: pool", "pinning: none", "operator: adopt"),
        *("cluster-pool-ipv4-cidr", "ipam-default-ip-pool", "ipam-multi-pool-pre-allocation", "--ipam"),
    ],
)
def test_every_word_of_the_pages_is_explained(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert explained(capsys, f"-- {word}").strip()


def test_every_field_has_its_kind_and_is_described() -> None:
    fields = fields_of(schemas())
    assert len(fields) > 200
    assert not [path for path, field in fields.items() if not field.description and "template" not in path][
        :5
    ]
