"""The cluster files under examples/ are what Ray and Kubernetes take."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cluster.conftest import needs_ray
from tests.program import ROOT

FOLDER = ROOT / "examples" / "cluster"


def read(name: str, kind: str | None = None) -> dict[str, Any]:
    """The file's only document, or the one of a kind."""
    documents = list(yaml.safe_load_all((FOLDER / name).read_text(encoding="utf-8")))
    (found,) = [document for document in documents if kind in (None, document.get("kind"))]
    assert isinstance(found, dict)
    return found


@needs_ray
def test_the_file_of_ray_up_fits_rays_own_schema():
    import jsonschema

    found = importlib.util.find_spec("ray")
    assert found is not None and found.origin is not None
    schema = json.loads((Path(found.origin).parent / "autoscaler" / "ray-schema.json").read_text(encoding="utf-8"))
    jsonschema.validate(read("ray_up.yaml"), schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**read("ray_up.yaml"), "head_ipp": "10.0.0.10"}, schema)


def test_the_file_of_ray_up_starts_ray_with_a_token_and_without_a_dashboard():
    config = read("ray_up.yaml")
    starts = [
        line for name in ("head", "worker") for line in config[f"{name}_start_ray_commands"] if "ray start" in line
    ]
    assert len(starts) == 2 and all("RAY_AUTH_MODE=token" in line for line in starts)
    assert f"--node-ip-address={config['provider']['head_ip']}" in starts[0]
    assert "--include-dashboard=false" in starts[0] and "--address=$RAY_HEAD_IP:6379" in starts[1]
    assert config["max_workers"] == len(config["provider"]["worker_ips"])


def test_the_manifest_of_kuberay_is_whole():
    manifest = read("kuberay.yaml", "RayCluster")
    assert (manifest["apiVersion"], manifest["kind"]) == ("ray.io/v1", "RayCluster")
    head, (players,) = manifest["spec"]["headGroupSpec"], manifest["spec"]["workerGroupSpecs"]
    assert set(head) <= {"rayStartParams", "template", "serviceType", "headService"}
    assert players["minReplicas"] <= players["replicas"] <= players["maxReplicas"]
    assert head["rayStartParams"]["include-dashboard"] == "false"
    for group, port in ((head, 6379), (players, int(players["rayStartParams"]["node-manager-port"]))):
        assert all(isinstance(value, str) for value in group["rayStartParams"].values()), "KubeRay takes texts alone"
        (container,) = group["template"]["spec"]["containers"]
        variables = {variable["name"]: variable for variable in container["env"]}
        for probe in ("livenessProbe", "readinessProbe"):  # else KubeRay asks the dashboard, and starts pods anew
            assert container[probe]["tcpSocket"] == {"port": port}
        assert variables["RAY_AUTH_MODE"]["value"] == "token"
        assert variables["RAY_AUTH_TOKEN"]["valueFrom"]["secretKeyRef"]["key"] == "auth_token"
        assert container["resources"]["limits"] == container["resources"]["requests"]
    mounts = {mount["name"] for mount in head["template"]["spec"]["containers"][0]["volumeMounts"]}
    assert mounts == {volume["name"] for volume in head["template"]["spec"]["volumes"]}
    (volume,) = head["template"]["spec"]["volumes"]
    claim = read("kuberay.yaml", "PersistentVolumeClaim")
    assert volume["persistentVolumeClaim"]["claimName"] == claim["metadata"]["name"]
    assert claim["spec"]["accessModes"] and claim["spec"]["resources"]["requests"]["storage"]


def test_only_pods_of_the_cluster_and_the_operator_reach_its_pods():
    policy, name = read("kuberay.yaml", "NetworkPolicy"), read("kuberay.yaml", "RayCluster")["metadata"]["name"]
    own = {"matchLabels": {"ray.io/cluster": name}}  # KubeRay gives this label to all pods of a cluster
    assert policy["spec"]["podSelector"] == own and policy["spec"]["policyTypes"] == ["Ingress"]
    ((first, operator),) = [rule["from"] for rule in policy["spec"]["ingress"]]
    assert first == {"podSelector": own} and operator["podSelector"]["matchLabels"]
