/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Pools and NUMA nodes as bars, and the table of all devices. */

import { el, list, bar, fillBar, bytes, count, card, table, row, fillRow, label, setText, set } from "./dom.js";
import { lookOf, shortName } from "./picture.js";

export function capacityCard() {
    return card("Capacity", el("div", { class: "bars" }));
}

/* The rows of bars: { key, title, total, parts, shown }. */
function barsOf(daemon) {
    const rows = [...daemon.pools.values()].map(pool => ({
        key: `pool ${pool.Name}`, title: pool.Name, note: `pool, ${count(pool.Total, "device")}`, total: pool.Total,
        parts: [["free", pool.Available, "available"], ["allocated", pool.Allocated, "allocated"], ["reserved", pool.Reserved, "reserved"],
            ["out of service", pool.OutOfService, "bad"]],
    }));
    for (const node of [...daemon.nodes.values()].sort((a, b) => a.Id - b.Id)) {
        rows.push({ key: `cpus ${node.Id}`, title: `Node ${node.Id}`, note: count(node.Cpus, "CPU"), total: node.Cpus,
            parts: [["free", node.CpusFree, "available"], ["allocated or the host's", node.Cpus - node.CpusFree, "allocated"]] });
        const inPages = node.Pages.reduce((sum, [size, total]) => sum + size * total, 0), ordinary = node.Memory - inPages;
        rows.push({ key: `memory ${node.Id}`, title: "", note: bytes(ordinary), total: ordinary, shown: bytes,
            parts: [["free", node.MemoryFree, "available"], ["allocated or the host's", ordinary - node.MemoryFree, "allocated"]] });
        for (const [size, total, free] of node.Pages.filter(([, total]) => total > 0))
            rows.push({ key: `pages ${node.Id} ${size}`, title: "", note: `${total} pages of ${bytes(size)}`, total,
                parts: [["free", free, "available"], ["in use", total - free, "allocated"]] });
    }
    return rows;
}

export function updateCapacity(element, daemon) {
    list(element.querySelector(".bars"), barsOf(daemon), item => item.key,
        item => el("div", { class: "bar-row" }, el("b", {}, item.title), el("span", { class: "bar-note" }), bar()),
        (node, item) => {
            setText(node.children[1], item.note);
            fillBar(node.lastChild, item.total, item.parts.map(([word, amount, look]) => ({ word, amount, look })), item.shown);
        });
}

export function deviceTable() {
    return table("All devices of the node, with pool, state and allocation", ["Address", "Device", "NUMA node", "Pool", "State", "Allocation", "Driver"]);
}

/* onSelect(address) */
export function updateDeviceTable(element, daemon, onSelect) {
    const devices = [...daemon.devices.values()].filter(device => device.Class >> 8 !== 0x0604 && device.Class >> 8 !== 0x0600);
    devices.sort((a, b) => a.Address < b.Address ? -1 : 1);
    list(element.tBodies[0], devices, device => device.Address, device => {
        const open = el("button", { class: "pf-v6-c-button pf-m-link pf-m-inline", type: "button", "data-device": device.Address, onclick: () => onSelect(device.Address) }, device.Address);
        return row([open, "", "", "", label("host"), "", ""]);
    }, (tr, device) => {
        const state = tr.cells[4].firstChild;
        setText(state, device.State);
        set(state, "class", `state look-${lookOf(device.State)}`);
        fillRow(tr, [tr.cells[0].firstChild, shortName(device.Name) + (device.PhysicalFunction ? `, VF of ${device.PhysicalFunction}` : ""),
            device.NumaNode < 0 ? "unknown" : String(device.NumaNode), device.Pool, state, device.Allocation, device.Driver]);
    });
}
