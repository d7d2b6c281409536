"""The connection by all that `kubernetes.config` knows: plugins, identity providers, proxies, pods.

Its `DynamicClient` costs two fifths more CPU for a small write than the pool alone.
"""

import ssl

from kubernetes import client as api
from kubernetes import config
from kubernetes.config.config_exception import ConfigException
from urllib3.util import parse_url
from urllib3.util.ssl_ import create_urllib3_context

from engine.cluster.client import Endpoint
from engine.cluster.kubeconfig import USER_AGENT


def load_endpoint(where: str, context: str, connections: int) -> Endpoint:
    """By the kubeconfig at `where`, or by the pod's service account where there is none.

    Errors: OSError when these settings can't make a request, and what the library raises.
    """
    settings = api.Configuration()
    settings.connection_pool_maxsize = connections
    try:
        if where:
            config.load_kube_config(where, context or None, settings)
        else:
            config.load_incluster_config(client_configuration=settings)
    except ConfigException as error:
        raise OSError(str(error)) from None
    server = str(settings.host)
    url = parse_url(server)
    if url.scheme not in ("http", "https") or not url.host:
        raise OSError("its server is no http or https URL")
    headers = {"User-Agent": USER_AGENT}
    settings.refresh_api_key_hook = None
    for credential in settings.auth_settings().values():
        value = str(credential["value"] or "")
        if not (value.isascii() and value.isprintable()):
            raise OSError("its token holds what no request can carry, such as a line break")
        if credential["in"] == "header" and value:
            headers[credential["key"]] = value
    manager = api.ApiClient(settings).rest_client.pool_manager
    if settings.verify_ssl:  # as in kubeconfig.py
        tls = create_urllib3_context()
        tls.verify_flags &= ~ssl.VERIFY_X509_STRICT
        if not settings.ssl_ca_cert:
            tls.load_default_certs()
        manager.connection_pool_kw["ssl_context"] = tls
    if manager.proxy is not None:  # a proxy without a tunnel needs the whole URL
        return Endpoint(server, manager.urlopen, server, headers)
    return Endpoint(server, manager.connection_from_url(server).urlopen, url.path or "", headers)
