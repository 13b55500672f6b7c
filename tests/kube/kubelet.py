#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A kubelet for tests: what it calls of a plugin, by gRPC's own client.

kubelet.py DIRECTORY [NAME]: each line of stdin is a command as JSON, each line of stdout its answer. The messages are made from
the field numbers of kubernetes/kubernetes 1.36, staging/src/k8s.io/kubelet/pkg/apis: pluginregistration/v1/api.proto,
dra/v1/api.proto, dra-health/v1alpha1/api.proto and dra-health/v1/api.proto.
"""

import json
import os
import sys
import threading
import time

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

DRA = 'k8s.io.kubelet.pkg.apis.dra.v1'
TYPES = {'string': 9, 'bool': 8, 'int64': 3, 'enum': 5}  # an enum has the wire format of an int32

# package: {message: {field: (number, type[, repeated])}}; "map" is map<string, MESSAGE>.
MESSAGES = {
    'pluginregistration': {
        'InfoRequest': {},
        'PluginInfo': {'type': (1, 'string'), 'name': (2, 'string'), 'endpoint': (3, 'string'), 'supported_versions': (4, 'string', 'repeated')},
        'RegistrationStatus': {'plugin_registered': (1, 'bool'), 'error': (2, 'string')},
        'RegistrationStatusResponse': {},
    },
    DRA: {
        'Claim': {'namespace': (1, 'string'), 'uid': (2, 'string'), 'name': (3, 'string')},
        'Device': {'request_names': (1, 'string', 'repeated'), 'pool_name': (2, 'string'), 'device_name': (3, 'string'), 'cdi_device_ids': (4, 'string', 'repeated')},
        'NodePrepareResourcesRequest': {'claims': (1, 'Claim', 'repeated')},
        'NodePrepareResourceResponse': {'devices': (1, 'Device', 'repeated'), 'error': (2, 'string')},
        'NodePrepareResourcesResponse': {'claims': (1, 'NodePrepareResourceResponse', 'map')},
        'NodeUnprepareResourcesRequest': {'claims': (1, 'Claim', 'repeated')},
        'NodeUnprepareResourceResponse': {'error': (1, 'string')},
        'NodeUnprepareResourcesResponse': {'claims': (1, 'NodeUnprepareResourceResponse', 'map')},
    },
}
for version in 'v1alpha1', 'v1':
    MESSAGES[version] = {
        'NodeWatchResourcesRequest': {},
        'DeviceIdentifier': {'pool_name': (1, 'string'), 'device_name': (2, 'string')},
        'DeviceHealth': {'device': (1, 'DeviceIdentifier'), 'health': (2, 'enum'), 'last_updated_time': (3, 'int64')},
        'NodeWatchResourcesResponse': {'devices': (1, 'DeviceHealth', 'repeated')},
    }
MESSAGES['v1']['DeviceHealth'] = {**MESSAGES['v1']['DeviceHealth'], 'health_check_timeout_seconds': (4, 'int64'), 'message': (5, 'string')}


def add_field(message, package, name, number, kind, label):
    field = message.field.add(name=name, number=number, label=3 if label else 1)
    if kind in TYPES:
        field.type = TYPES[kind]
    else:
        field.type, field.type_name = 11, f'.{package}.{kind}'
    if label == 'map':
        entry = message.nested_type.add(name=name.capitalize() + 'Entry')
        entry.options.map_entry = True
        add_field(entry, package, 'key', 1, 'string', None)
        add_field(entry, package, 'value', 2, kind, None)
        field.type_name = f'.{package}.{message.name}.{entry.name}'


def make_classes():
    pool, classes = descriptor_pool.DescriptorPool(), {}
    for package, messages in MESSAGES.items():
        file = descriptor_pb2.FileDescriptorProto(name=f'{package}.proto', package=package, syntax='proto3')
        for name, fields in messages.items():
            message = file.message_type.add(name=name)
            for field, (number, kind, *label) in fields.items():
                add_field(message, package, field, number, kind, label[0] if label else None)
        pool.Add(file)
        for name in messages:
            descriptor = pool.FindMessageTypeByName(f'{package}.{name}')
            if hasattr(message_factory, 'GetMessageClass'):
                classes[package, name] = message_factory.GetMessageClass(descriptor)
            else:
                classes[package, name] = message_factory.MessageFactory(pool).GetPrototype(descriptor)
    return classes


CLASS = make_classes()


class Kubelet:
    def __init__(self, directory, name):
        self.directory, self.name, self.channels, self.streams = directory, name, {}, {}

    def channel(self, path):
        if path not in self.channels:
            # A plugin that is back is tried at once.
            self.channels[path] = grpc.insecure_channel(f'unix:{path}', options=[
                ('grpc.initial_reconnect_backoff_ms', 50), ('grpc.min_reconnect_backoff_ms', 50), ('grpc.max_reconnect_backoff_ms', 200)])
        return self.channels[path]

    def call(self, path, package, service, method, request, reply, timeout=45, **fields):
        stub = self.channel(path).unary_unary(f'/{package}.{service}/{method}', request_serializer=lambda m: m.SerializeToString(),
                                              response_deserializer=CLASS[package, reply].FromString)
        for attempt in range(20):
            try:
                return stub(CLASS[package, request](**fields), timeout=timeout, wait_for_ready=timeout > 5)
            except grpc.RpcError as e:
                # The plugin was killed: the kubelet tries again.
                if e.code() != grpc.StatusCode.UNAVAILABLE or timeout <= 5 or attempt == 19:
                    raise
                time.sleep(0.1)

    def registration(self, method, request, reply, **fields):
        return self.call(f'{self.directory}/plugins_registry/{self.name}-reg.sock', 'pluginregistration', 'Registration', method, request, reply, **fields)

    def plugin(self):
        return f'{self.directory}/plugins/{self.name}/dra.sock'

    def do_info(self):
        info = self.registration('GetInfo', 'InfoRequest', 'PluginInfo')
        return {'type': info.type, 'name': info.name, 'endpoint': info.endpoint, 'versions': list(info.supported_versions)}

    def do_status(self, registered=True, error=''):
        self.registration('NotifyRegistrationStatus', 'RegistrationStatus', 'RegistrationStatusResponse', plugin_registered=registered, error=error)
        return {}

    def refs(self, claims):
        return [CLASS[DRA, 'Claim'](namespace=c['namespace'], uid=c['uid'], name=c['name']) for c in claims]

    def do_prepare(self, claims, timeout=45):
        start = time.monotonic()
        answer = self.call(self.plugin(), DRA, 'DRAPlugin', 'NodePrepareResources', 'NodePrepareResourcesRequest',
                           'NodePrepareResourcesResponse', timeout=timeout, claims=self.refs(claims))
        return {'ms': (time.monotonic() - start) * 1000, 'claims': {uid: {
            'error': c.error,
            'devices': [{'requests': list(d.request_names), 'pool': d.pool_name, 'device': d.device_name, 'cdi': list(d.cdi_device_ids)} for d in c.devices],
        } for uid, c in answer.claims.items()}}

    def do_unprepare(self, claims, timeout=45):
        start = time.monotonic()
        answer = self.call(self.plugin(), DRA, 'DRAPlugin', 'NodeUnprepareResources', 'NodeUnprepareResourcesRequest',
                           'NodeUnprepareResourcesResponse', timeout=timeout, claims=self.refs(claims))
        return {'ms': (time.monotonic() - start) * 1000, 'claims': {uid: {'error': c.error} for uid, c in answer.claims.items()}}

    def read(self, version):
        stub = self.channel(self.plugin()).unary_stream(f'/{version}.DRAResourceHealth/NodeWatchResources', request_serializer=lambda m: m.SerializeToString(),
                                                        response_deserializer=CLASS[version, 'NodeWatchResourcesResponse'].FromString)
        # The kubelet watches again when a stream ends.
        while True:
            try:
                for message in stub(CLASS[version, 'NodeWatchResourcesRequest']()):
                    self.streams[version].append({d.device.device_name: [d.device.pool_name, d.health, getattr(d, 'message', '')] for d in message.devices})
            except grpc.RpcError:
                pass
            time.sleep(0.1)

    def do_watch(self, version):
        self.streams[version] = []
        threading.Thread(target=self.read, args=(version,), daemon=True).start()
        return {}

    def do_health(self, version):
        """All messages so far."""
        return {'messages': self.streams[version]}


def main():
    kubelet = Kubelet(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else 'passthroughd.org')
    for line in sys.stdin:
        command = json.loads(line)
        try:
            answer = getattr(kubelet, 'do_' + command.pop('do'))(**command)
        except grpc.RpcError as e:
            answer = {'code': e.code().name, 'details': e.details()}
        print(json.dumps(answer), flush=True)
    os._exit(0)  # without waiting for streams


main()
