# SPDX-License-Identifier: GPL-2.0-or-later
"""What NVIDIA's library says, by ctypes. Calls functions that read, and no others."""

import ctypes

ANCESTORS = {0: 'X', 10: 'PIX', 20: 'PXB', 30: 'PHB', 40: 'NODE', 50: 'SYS'}
SUCCESS = 0
NVLINKS_MAX = 36
P2P_NVLINK = 2
NODE_SCOPE = 0
MASK_WORDS = 64  # of 64 bits


class PciInfo(ctypes.Structure):
    _fields_ = [('legacy', ctypes.c_char * 16), ('domain', ctypes.c_uint), ('bus', ctypes.c_uint), ('device', ctypes.c_uint), ('id', ctypes.c_uint), ('subsystem', ctypes.c_uint),
                ('bus_id', ctypes.c_char * 32)]


class Fabric(ctypes.Structure):
    _fields_ = [('cluster', ctypes.c_ubyte * 16), ('status', ctypes.c_uint), ('clique', ctypes.c_uint), ('state', ctypes.c_ubyte)]


class Nvml:
    def __init__(self):
        self.library = ctypes.CDLL('libnvidia-ml.so.1')
        result = self.library.nvmlInit_v2()
        if result != SUCCESS:
            raise OSError(f'nvmlInit_v2() returns {result}')

    def number(self, function, *arguments):
        """The last argument of the function, or None: the library lacks it, or the GPU does not support it."""
        value = ctypes.c_uint()
        call = getattr(self.library, function, None)
        return value.value if call and call(*arguments, ctypes.byref(value)) == SUCCESS else None

    def mask(self, function, device, *scope):
        """The numbers of the bits of a mask."""
        words = (ctypes.c_ulong * MASK_WORDS)()
        call = getattr(self.library, function, None)
        if not call or call(device, MASK_WORDS, words, *scope) != SUCCESS:
            return None
        return [i for i in range(MASK_WORDS * 64) if words[i // 64] >> i % 64 & 1]

    def gpu(self, device):
        pci, fabric, bar1 = PciInfo(), Fabric(), (ctypes.c_ulonglong * 3)()
        self.library.nvmlDeviceGetPciInfo_v3(device, ctypes.byref(pci))
        registered = getattr(self.library, 'nvmlDeviceGetGpuFabricInfo', lambda *_: 1)(device, ctypes.byref(fabric)) == SUCCESS
        links = [self.number('nvmlDeviceGetNvLinkState', device, i) for i in range(NVLINKS_MAX)]
        return {
            'address': f'{pci.domain:04x}:{pci.bus:02x}:{pci.device:02x}.0',
            'id': f'{pci.id & 0xffff:04x}:{pci.id >> 16:04x}',
            'subsystem': f'{pci.subsystem & 0xffff:04x}:{pci.subsystem >> 16:04x}',
            'minor': self.number('nvmlDeviceGetMinorNumber', device),
            'module': self.number('nvmlDeviceGetModuleId', device),
            'generation': self.number('nvmlDeviceGetCurrPcieLinkGeneration', device),
            'width': self.number('nvmlDeviceGetCurrPcieLinkWidth', device),
            'max_generation': self.number('nvmlDeviceGetGpuMaxPcieLinkGeneration', device),
            'max_width': self.number('nvmlDeviceGetMaxPcieLinkWidth', device),
            'bar1': bar1[0] if self.library.nvmlDeviceGetBAR1MemoryInfo(device, bar1) == SUCCESS else None,
            'cpus': self.mask('nvmlDeviceGetCpuAffinity', device),
            'nodes': self.mask('nvmlDeviceGetMemoryAffinity', device, NODE_SCOPE),
            'memory_node': self.number('nvmlDeviceGetNumaNodeId', device),
            'nvlinks': [links.count(1), len([link for link in links if link is not None])],
            'fabric': [fabric.state, fabric.status, fabric.clique] if registered else None,
        }

    def describe(self):
        count = self.number('nvmlDeviceGetCount_v2') or 0
        devices = []
        for i in range(count):
            device = ctypes.c_void_p()
            if self.library.nvmlDeviceGetHandleByIndex_v2(i, ctypes.byref(device)) == SUCCESS:
                devices.append(device)
        gpus, pairs = [self.gpu(device) for device in devices], []
        for i, one in enumerate(devices):
            for j in range(i + 1, len(devices)):
                pairs.append({'gpus': [gpus[i]['address'], gpus[j]['address']],
                              'distance': ANCESTORS.get(self.number('nvmlDeviceGetTopologyCommonAncestor', one, devices[j])),
                              'nvlink': self.number('nvmlDeviceGetP2PStatus', one, devices[j], P2P_NVLINK) == 0})
        self.library.nvmlShutdown()
        return {'gpus': gpus, 'pairs': pairs}
