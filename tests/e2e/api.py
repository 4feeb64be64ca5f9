"""A kube-apiserver of one's own: etcd and kube-apiserver on loopback, and two ways to talk to it, HTTP for what a test does and kubectl for what a user does."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from http import HTTPStatus as Status
from pathlib import Path
from typing import Any, NamedTuple, Self

from urllib3 import HTTPSConnectionPool
from urllib3.exceptions import HTTPError

from tests.e2e.processes import LOOPBACK, Program, free_port

Object = dict[str, Any]
TOKEN = "e2e"  # noqa: S105 - of a server that only this machine can reach, for some minutes

BETA = (
    "--feature-gates=MutatingAdmissionPolicy=true",
    "--runtime-config=admissionregistration.k8s.io/v1beta1=true",
)
"""Kubernetes 1.34 and 1.35 have MutatingAdmissionPolicies, and do not evaluate them by default."""
NODES = "/api/v1/nodes"
MERGE = "application/merge-patch+json"
"""The kind of a patch that names the fields to change."""
STRATEGIC = "application/strategic-merge-patch+json"
"""The same of built-in kinds, whose lists are merged by key."""
CONFIG_MAPS = "/api/v1/namespaces/kube-system/configmaps"
CILIUM_NODES = "/apis/cilium.io/v2/ciliumnodes"
POOLS = "/apis/cilium.io/v2alpha1/ciliumpodippools"
NODE_CONFIGS = tuple(
    f"/apis/cilium.io/{version}/namespaces/kube-system/ciliumnodeconfigs" for version in ("v2", "v2alpha1")
)
"""Of every apiVersion; a server answers for those that it has."""
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
DEPLOYMENTS = "/apis/apps/v1/namespaces/kube-system/deployments"


class Answer(NamedTuple):
    """What the server answered."""

    code: int
    body: Object

    @property
    def message(self) -> str:
        """Why it refused."""
        return str(self.body.get("message", ""))


@dataclass
class Api:
    """A kube-apiserver that runs. Every request has the rights of a cluster's administrator."""

    binaries: Path
    """The folder of etcd, kube-apiserver and kubectl."""
    folder: Path
    """Where it may write."""
    server: Path | None = None
    """The folder of the kube-apiserver, where it is another release than the rest."""
    address: str = LOOPBACK
    """Where it listens: agents in namespaces of their own reach it at another address of this machine."""
    port: int = field(default_factory=free_port)
    programs: list[Program] = field(default_factory=list)
    _command: tuple[str, ...] = ()
    _etcd: tuple[str, ...] = ()
    _store: str = ""

    def __enter__(self) -> Self:
        """Start both servers; some 6 seconds."""
        client, peer = free_port(), free_port()
        url = self._store = f"http://{LOOPBACK}:{client}"
        self._etcd = (
            str(self.binaries / "etcd"),
            f"--data-dir={self._data}",
            f"--listen-client-urls={url}",
            f"--advertise-client-urls={url}",
            f"--listen-peer-urls=http://{LOOPBACK}:{peer}",
            f"--initial-advertise-peer-urls=http://{LOOPBACK}:{peer}",
            f"--initial-cluster=default=http://{LOOPBACK}:{peer}",
            "--unsafe-no-fsync",
        )
        tokens, key = self.folder / "tokens.csv", self.folder / "serviceaccounts.key"
        tokens.write_text(f"{TOKEN},e2e,e2e,system:masters\n")
        subprocess.run(["openssl", "genrsa", "-out", str(key), "2048"], check=True, capture_output=True)
        self._command = (
            str(self.release / "kube-apiserver"),
            f"--etcd-servers={url}",
            f"--secure-port={self.port}",
            f"--bind-address={self.address}",
            f"--advertise-address={self.address}",
            f"--cert-dir={self.folder / 'certificates'}",
            f"--token-auth-file={tokens}",
            "--authorization-mode=Node,RBAC",
            "--enable-admission-plugins=NodeRestriction",
            "--allow-privileged=true",  # as kubeadm has it: agents need it
            *(BETA if self.minor in {(1, 34), (1, 35)} else ()),
            "--service-cluster-ip-range=10.96.0.0/16",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={key}",
            f"--service-account-signing-key-file={key}",
            "--disable-admission-plugins=ServiceAccount",
            "--endpoint-reconciler-type=none",
        )
        self._serve_etcd()
        self.serve()
        self.kubeconfig.write_text(json.dumps(self._kubeconfig()))
        return self

    @property
    def release(self) -> Path:
        """The folder of the kube-apiserver: `kubernetes-1.36.3`."""
        return self.server or self.binaries

    @property
    def minor(self) -> tuple[int, int]:
        """The minor of the kube-apiserver."""
        major, minor, *_ = self.release.name.removeprefix("kubernetes-").split(".")
        return int(major), int(minor)

    def serve(self) -> None:
        """Start the kube-apiserver; the one that runs is stopped first."""
        for program in self.programs[1:]:
            program.stop()
        self.programs[1:] = [Program(self.folder / "kube-apiserver.log", *self._command)]
        self.programs[1].until(self._ready, "the kube-apiserver is ready", 180)

    @contextmanager
    def beside(self) -> Iterator[tuple[Program, str]]:
        """Start a second kube-apiserver before the same etcd, as clusters have several; yield it, and its URL."""
        port = free_port()
        command = [
            f"--secure-port={port}" if each.startswith("--secure-port=") else each for each in self._command
        ]
        url = f"https://{self.address}:{port}"
        with Program(self.folder / "beside.log", *command) as program:
            ready = ("get", "--raw", "/readyz", f"--server={url}")
            program.until(
                lambda: self.kubectl(*ready).returncode == 0, "a second kube-apiserver is ready", 180
            )
            yield program, url

    def _serve_etcd(self) -> None:
        self.programs[:1] = [Program(self.folder / "etcd.log", *self._etcd)]

    @property
    def _data(self) -> Path:
        return self.folder / "etcd"

    def snapshot(self, file: Path) -> None:
        """Save what etcd has now."""
        program = str(self.binaries / "etcdctl")
        command = [program, f"--endpoints={self._store}", "snapshot", "save", str(file)]
        subprocess.run(command, check=True, capture_output=True)

    def lose_etcd(self, *restore: str) -> None:
        """Stop both servers, remove what etcd has, and start them again; `restore` is a command that makes its folder anew, but for the folder."""
        for program in self.programs:
            program.stop(signal.SIGKILL)  # a kube-apiserver waits some time for those who watch
        self._http.close()
        del self._http
        shutil.rmtree(self._data)
        if restore:
            name, *arguments = restore
            command = [str(self.binaries / name), *arguments, f"--data-dir={self._data}"]
            subprocess.run(command, check=True, capture_output=True)
        self._serve_etcd()
        self.serve()

    def requests(self, resource: str) -> Counter[str]:
        """Return how many requests for a resource it answered since it started, by verb; a watch counts when it ends."""
        found: Counter[str] = Counter()
        for line in self._metrics("apiserver_request_total"):
            if f'resource="{resource}"' in line:
                found[line.partition('verb="')[2].partition('"')[0]] += int(float(line.split()[-1]))
        return found

    def policy_seconds(self) -> float:
        """Return for how long it evaluated admission policies since it started."""
        name = "apiserver_admission_controller_admission_duration_seconds_sum"
        return sum(float(line.split()[-1]) for line in self._metrics(name) if 'AdmissionPolicy"' in line)

    def _metrics(self, name: str) -> list[str]:
        answer = self._http.request("GET", "/metrics", headers={"Authorization": f"Bearer {TOKEN}"})
        return [line for line in answer.data.decode().splitlines() if line.startswith(f"{name}{{")]

    def __exit__(self, *_: object) -> None:
        self._http.close()
        for program in reversed(self.programs):
            program.stop()

    @property
    def kubeconfig(self) -> Path:
        """The file that kubectl and the operator read."""
        return self.folder / "kubeconfig"

    @property
    def _authority(self) -> Path:
        return self.folder / "certificates" / "apiserver.crt"

    def _kubeconfig(self) -> Object:
        server = {
            "server": f"https://{self.address}:{self.port}",
            "certificate-authority": str(self._authority),
        }
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "e2e", "cluster": server}],
            "users": [{"name": "e2e", "user": {"token": TOKEN}}],
            "contexts": [{"name": "e2e", "context": {"cluster": "e2e", "user": "e2e"}}],
            "current-context": "e2e",
        }

    @cached_property
    def _http(self) -> HTTPSConnectionPool:
        return HTTPSConnectionPool(
            self.address,
            self.port,
            maxsize=8,
            block=True,
            ca_certs=str(self._authority),
            retries=False,
            timeout=60,
        )

    def _ready(self) -> bool:
        if not self._authority.exists():
            return False
        try:
            return (
                self.ask("GET", "/readyz").code == Status.OK
                and self.ask("GET", "/api/v1/namespaces/kube-system").code == Status.OK
            )
        except HTTPError:
            return False

    # HTTP: what the test does in the part of agents, kubelets and people.

    def ask(
        self,
        method: str,
        path: str,
        body: Object | None = None,
        content: str = "application/json",
        kubelet: str = "",
        user: Sequence[str] = (),
    ) -> Answer:
        """Send one request; from any thread. `kubelet`: with the rights of the kubelet of this node; `user`: of this one, in these groups."""
        headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": content, "Accept": "application/json"}
        if kubelet:
            user = (f"system:node:{kubelet}", "system:nodes")
        if user:
            headers |= {"Impersonate-User": user[0], "Impersonate-Group": ",".join(user[1:])}
        response = self._http.request(
            method, path, body=None if body is None else json.dumps(body), headers=headers
        )
        return Answer(response.status, json.loads(response.data) if response.data.startswith(b"{") else {})

    def get(self, path: str) -> Object:
        """Read an object or a list."""
        return self.sure("GET", path)

    def sure(
        self, method: str, path: str, body: Object | None = None, content: str = "application/json"
    ) -> Object:
        """Send a request that must not fail."""
        answer = self.ask(method, path, body, content)
        assert answer.code < Status.BAD_REQUEST, f"{method} {path}: {answer.code} {answer.message}"
        return answer.body

    def items(self, path: str) -> dict[str, Object]:
        """Read the objects of a kind by name; none where the server does not know the kind."""
        answer = self.ask("GET", path)
        return (
            {each["metadata"]["name"]: each for each in answer.body.get("items", ())}
            if answer.code == Status.OK
            else {}
        )

    def create(self, path: str, *objects: Object) -> list[Object]:
        """Create objects, as many at a time as helps."""
        return self.at_once(lambda each: self.sure("POST", path, each), objects)

    def change(self, path: str, edit: Callable[[Object], None]) -> Object:
        """Read an object, edit it, and write it back whole, as agents do, until no other writer comes between."""
        while True:
            whole = self.get(path)
            edit(whole)
            answer = self.ask("PUT", path, whole)
            if answer.code != Status.CONFLICT:
                assert answer.code == Status.OK, answer.message
                return answer.body

    def delete(self, *paths: str) -> None:
        """Delete objects, or whole collections; what is not there is gone already."""
        for path in paths:
            self.ask("DELETE", path)

    @staticmethod
    def at_once(do: Callable[[Object], Object], objects: Iterable[Object]) -> list[Object]:
        """Do something for every object, eight at a time; results in order."""
        with ThreadPoolExecutor(8) as pool:
            return list(pool.map(do, objects))

    # kubectl: what a user does.

    def kubectl(self, *arguments: str, text: str = "") -> subprocess.CompletedProcess[str]:
        """Run kubectl, whatever comes of it."""
        environment = {"KUBECONFIG": str(self.kubeconfig), "HOME": str(self.folder), "PATH": ""}
        return subprocess.run(
            [str(self.binaries / "kubectl"), *arguments],
            input=text,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )

    def apply(self, text: str, *options: str) -> subprocess.CompletedProcess[str]:
        """Run `kubectl apply --server-side` as our README says, on a text."""
        return self.kubectl("apply", "--server-side", "--field-manager=ipamc", *options, "-f", "-", text=text)

    def applied(self, text: str, *options: str) -> str:
        """Do `apply`, and fail if kubectl does; give what it says."""
        done = self.apply(text, *options)
        assert done.returncode == 0, done.stderr[-3000:]
        return done.stdout


def versions(objects: Mapping[str, Object]) -> dict[str, str]:
    """Return the resourceVersion of each object: it changes with every write that changes something."""
    return {name: each["metadata"]["resourceVersion"] for name, each in objects.items()}
