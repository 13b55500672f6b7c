#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""An API server for tests: nodes, ResourceSlices and ResourceClaims of resource.k8s.io/v1, with the rules that a driver can break.

apiserver.py PORT NODE [TLS_PORT CERTIFICATE KEY CLIENT_CA]: the token "node" is the kubelet's of NODE, "admin" may do all. On
TLS_PORT a client certificate of CLIENT_CA is a user too: system:node:NODE is the kubelet's. All three files are read for each
connection. Limits are those of kubernetes/api, resource/v1/types.go, and kubernetes/kubernetes,
pkg/apis/resource/validation/validation.go; what a node may do is in plugin/pkg/auth/authorizer/node/node_authorizer.go and
plugin/pkg/admission/noderestriction/admission.go; the user of a certificate is in
staging/src/k8s.io/apiserver/pkg/authentication/request/x509/x509.go.
"""

import http.server
import json
import re
import ssl
import sys
import threading
import time
import urllib.parse
import uuid

LABEL = re.compile(r'[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?')
SUBDOMAIN = re.compile(r'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
IDENTIFIER = re.compile(r'[A-Za-z_][A-Za-z0-9_]*')
LABEL_VALUE = re.compile(r'([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?')
QUALIFIED = re.compile(r'([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?')
API = '/apis/resource.k8s.io/v1'


class Refusal(Exception):
    def __init__(self, code, reason, message, **details):
        super().__init__(message)
        self.code, self.reason, self.details = code, reason, details


class State:
    def __init__(self, node):
        self.version, self.node = 1, node
        self.nodes = {node: self.new({'metadata': {'name': node}}), 'other': self.new({'metadata': {'name': 'other'}})}
        self.slices, self.claims, self.log = {}, {}, []
        self.faults = {}  # {"conflicts": N, "lost": N, "fail": STATUS, "page": STATUS, "missing": STATUS}
        self.drop = []  # members that the API server does not know: those of a feature that is off
        self.tokens = {'node': node, 'admin': None}
        self.revoked = []  # serial numbers of client certificates

    def new(self, o):
        self.version += 1
        o['metadata'].update(uid=str(uuid.uuid4()), resourceVersion=str(self.version))
        return o

    def use(self, fault):
        if self.faults.get(fault, 0) > 0:
            self.faults[fault] -= 1
            return True
        return False


def need(condition, path, message):
    if not condition:
        raise Refusal(422, 'Invalid', f'{path}: {message}')


def validate_attribute(path, name, value):
    domain, _, identifier = name.rpartition('/')
    need(IDENTIFIER.fullmatch(identifier) and len(identifier) <= 32, path, f'{name} is no C identifier of 32 characters')
    need(not domain or (SUBDOMAIN.fullmatch(domain) and len(domain) <= 63), path, f'{domain} is no domain')
    need(len(value) == 1, path, 'exactly one value must be set')
    (kind, v), = value.items()
    kinds = {'int': int, 'bool': bool, 'string': str, 'version': str}
    need(kind in kinds and type(v) is kinds[kind], path, f'{kind} is no kind of attribute, or its value another')
    if kinds[kind] is str:
        need(len(v.encode()) <= 64, path, 'longer than 64')


def validate_device(path, d):
    need(LABEL.fullmatch(d.get('name', '')), path, f'{d.get("name")} is no DNS label')
    attributes = d.get('attributes', {})
    need(len(attributes) + len(d.get('capacity', {})) <= 32, path, 'more than 32 attributes')
    for name, value in attributes.items():
        validate_attribute(f'{path}.attributes[{name}]', name, value)
    taints = d.get('taints', [])
    need(len(taints) <= 16, path, 'more than 16 taints')
    for t in taints:
        need(QUALIFIED.fullmatch(t.get('key', '')) and LABEL_VALUE.fullmatch(t.get('value', '')), path, f'taint {t}')
        need(t.get('effect') in ('None', 'NoSchedule', 'NoExecute'), path, f'effect {t.get("effect")}')
        t.setdefault('timeAdded', time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime()))
    need(len(d.get('consumesCounters', [])) <= 2, path, 'more than 2 consumptions of counters')


def validate_slice(o):
    spec = o['spec']
    name = o['metadata'].get('name', '')
    need(SUBDOMAIN.fullmatch(name) and len(name) <= 253, 'metadata.name', 'no DNS subdomain')
    need(set(spec) <= {'driver', 'pool', 'nodeName', 'devices', 'sharedCounters'}, 'spec', f'unknown members of {list(spec)}')
    need(SUBDOMAIN.fullmatch(spec['driver']) and len(spec['driver']) <= 63, 'spec.driver', 'no DNS subdomain')
    need(SUBDOMAIN.fullmatch(spec['pool']['name']), 'spec.pool.name', 'no DNS subdomain')
    need(spec['pool']['resourceSliceCount'] > 0 and spec['pool']['generation'] >= 0, 'spec.pool', 'wrong numbers')
    devices, counters = spec.get('devices', []), spec.get('sharedCounters', [])
    need(not devices or not counters, 'spec', 'only one of devices and sharedCounters')
    has_advanced = any(d.get('taints') or d.get('consumesCounters') for d in devices)
    need(len(devices) <= (64 if has_advanced else 128), 'spec.devices', 'too many devices')
    need(len({d['name'] for d in devices}) == len(devices), 'spec.devices', 'a name is there twice')
    for d in devices:
        validate_device(f'spec.devices[{d.get("name")}]', d)
    need(len(counters) <= 8 and len({c['name'] for c in counters}) == len(counters), 'spec.sharedCounters', 'too many, or a name twice')
    for c in counters:
        need(LABEL.fullmatch(c['name']) and 0 < len(c['counters']) <= 32, 'spec.sharedCounters', c['name'])
        for counter, value in c['counters'].items():
            need(LABEL.fullmatch(counter) and re.fullmatch(r'\d+', value['value']), 'spec.sharedCounters', counter)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'

    def log_message(self, *args):
        pass

    def send(self, code, document):
        text = json.dumps(document).encode()
        self.send_response(code)
        self.send_header('Content-Type', 'application/json')
        self.send_header('Content-Length', str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def peer(self):
        """The node and the serial number of the client's certificate."""
        certificate = self.connection.getpeercert() if isinstance(self.connection, ssl.SSLSocket) else None
        if not certificate:
            return None, None
        subject = {key: value for part in certificate['subject'] for key, value in part}
        is_node = subject.get('organizationName') == 'system:nodes' and subject['commonName'].startswith('system:node:')
        return subject['commonName'].removeprefix('system:node:') if is_node else None, certificate['serialNumber']

    def handle_one(self):
        s = self.server.state
        length = int(self.headers.get('Content-Length') or 0)
        body = json.loads(self.rfile.read(length)) if length else None
        url = urllib.parse.urlsplit(self.path)
        if url.path == '/control':
            if self.command == 'POST':
                for key, value in body.items():
                    setattr(s, key, value)
            return self.send(200, {'log': s.log, 'faults': s.faults})
        token = (self.headers.get('Authorization') or '').removeprefix('Bearer ')
        user, certificate = self.peer()
        entry = {'method': self.command, 'path': self.path, 'token': token or user, 'certificate': certificate}
        s.log.append(entry)
        try:
            if s.faults.get('page'):  # of a proxy
                return self.send(s.faults['page'], {'page': 'not found'})
            if s.faults.get('fail'):
                raise Refusal(s.faults['fail'], 'InternalError', 'the API server fails')
            if (token not in s.tokens and not user) or certificate in s.revoked:
                raise Refusal(401, 'Unauthorized', 'Unauthorized')
            code, document = self.route(s, s.tokens.get(token, user), url, body, entry)
        except Refusal as e:
            code, document = e.code, {'kind': 'Status', 'status': 'Failure', 'reason': e.reason, 'message': str(e), 'details': e.details, 'code': e.code}
        entry['status'] = code
        if self.command != 'GET' and s.use('lost'):
            self.close_connection = True
            return None
        return self.send(code, document)

    do_GET = do_POST = do_PUT = do_DELETE = handle_one

    def route(self, s, user, url, body, entry):
        parts = url.path.split('/')
        if url.path.startswith('/api/v1/nodes/'):
            if user and parts[4] != user:
                raise Refusal(403, 'Forbidden', 'a node may read itself only')
            if parts[4] not in s.nodes:
                raise Refusal(404, 'NotFound', f'nodes "{parts[4]}" not found')
            return 200, s.nodes[parts[4]]
        if url.path.startswith(API + '/resourceslices'):
            return self.slices(s, user, url, body, parts[5] if len(parts) > 5 else None, entry)
        match = re.fullmatch(API + r'/namespaces/([^/]+)/resourceclaims/([^/]+)', url.path)
        if match:
            return self.claim(s, user, match.groups(), body)
        raise Refusal(404, 'NotFound', 'the server could not find the requested resource')

    def claim(self, s, user, key, body):
        if self.command == 'PUT' and not user:  # by tests: made or replaced as it is
            s.claims[key] = body
            return 200, body
        if self.command == 'DELETE' and not user:
            s.claims.pop(key, None)
            return 200, {}
        if user and user != s.node:  # all claims are of pods there
            raise Refusal(403, 'Forbidden', f'no relationship found between node "{user}" and this object')
        if key not in s.claims:
            status = s.faults.get('missing', 404)  # 403: the node authorizer knows no pod with it
            raise Refusal(status, 'NotFound' if status == 404 else 'Forbidden', f'resourceclaims "{key[1]}" not found', kind='resourceclaims', name=key[1])
        return 200, {'kind': 'ResourceClaim', **s.claims[key]}

    def slices(self, s, user, url, body, name, entry):
        if self.command == 'GET' and not name:
            selector = dict(part.split('=', 1) for part in urllib.parse.parse_qs(url.query).get('fieldSelector', [''])[0].split(',') if part)
            if user and selector.get('spec.nodeName') != user:
                raise Refusal(403, 'Forbidden', 'can only list/watch/deletecollection resourceslices with a field selector for its node')
            keys = {'spec.nodeName': 'nodeName', 'spec.driver': 'driver'}
            return 200, {'kind': 'ResourceSliceList', 'items': [o for o in s.slices.values() if all(o['spec'].get(keys[k]) == v for k, v in selector.items())]}
        old = s.slices.get(name)
        if name and not old:
            raise Refusal(404, 'NotFound', f'resourceslices "{name}" not found')
        if user and ((body and body['spec'].get('nodeName') != user) or (old and old['spec'].get('nodeName') != user)):
            raise Refusal(403, 'Forbidden', 'a node may write ResourceSlices of itself only')
        if self.command == 'DELETE':
            del s.slices[name]
            return 200, {}
        for device in body['spec'].get('devices', []):
            for key in s.drop:
                entry[key] = device.pop(key, None) or entry.get(key)
        validate_slice(body)
        if self.command == 'POST':
            if body['metadata']['name'] in s.slices:
                raise Refusal(409, 'AlreadyExists', f'resourceslices "{body["metadata"]["name"]}" already exists')
            s.slices[body['metadata']['name']] = s.new(body)
            return 201, body
        if s.use('conflicts') or body['metadata'].get('resourceVersion') != old['metadata']['resourceVersion']:
            raise Refusal(409, 'Conflict', 'the object has been modified')
        need(body['spec']['nodeName'] == old['spec']['nodeName'] and body['spec']['driver'] == old['spec']['driver'], 'spec', 'immutable')
        uid = old['metadata']['uid']
        s.slices[name] = s.new(body)
        body['metadata']['uid'] = uid
        return 200, body


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    files = None  # certificate, key, CA of clients

    def finish_request(self, request, address):
        if self.files:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.verify_mode = ssl.CERT_OPTIONAL
            context.load_cert_chain(*self.files[:2])
            context.load_verify_locations(self.files[2])
            request = context.wrap_socket(request, server_side=True)
        super().finish_request(request, address)

    def handle_error(self, request, address):
        pass  # a client that refuses the certificate, or has a wrong one


def main():
    server = Server(('127.0.0.1', int(sys.argv[1])), Handler)
    server.state = State(sys.argv[2])
    if len(sys.argv) > 3:
        tls = Server(('127.0.0.1', int(sys.argv[3])), Handler)
        tls.state, tls.files = server.state, sys.argv[4:7]
        threading.Thread(target=tls.serve_forever, daemon=True).start()
    server.serve_forever()


main()
