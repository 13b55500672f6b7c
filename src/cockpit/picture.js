/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The node as a picture: NUMA nodes, root complexes, switches, GPUs and NICs as nested boxes, as "passthroughctl topology --svg" draws them.
 * The boxes are made of the topology, and again when devices come or go. A change of a device changes its box only. */

import { el, set, setText, list, button, count } from "./dom.js";

const SHOWN_KINDS = ["gpu", "nic", "accelerator"];
const COLOURS = 6;
const ZOOMS = [60, 80, 100, 125, 150, 200];

/* States that need a look; the other ones are available, allocated, reserved and host. */
export const BAD_STATES = ["missing", "hardware-changed", "stuck", "quarantined", "unhealthy", "contested"];

export function lookOf(state) {
    return BAD_STATES.includes(state) ? "bad" : state;
}

/* The class of the nth colour of allocations, see page.css. */
export function colourClass(n) {
    return `colour-${n % COLOURS}`;
}

/* "H100 SXM5 80GB" of "NVIDIA Corporation GH100 [H100 SXM5 80GB]" */
export function shortName(name) {
    return name?.match(/\[([^[\]]+)\]$/)?.[1] ?? name ?? "";
}

/* No line breaks in "PCIe 5x16". */
function linkText({ LinkGeneration: generation, LinkWidth: width, MaxLinkGeneration: best, MaxLinkWidth: most }) {
    if (!best)
        return "";
    return generation && (generation < best || width < most) ? `PCIe\u00a0${generation}x${width}\u00a0of\u00a0${best}x${most}` : `PCIe\u00a0${best}x${most}`;
}

export class Picture {
    /* onSelect(address): the user chose a device. */
    constructor(onSelect) {
        this.onSelect = onSelect;
        this.boxes = new Map();     /* address: { node, facts, state, holder } */
        this.groups = new Map();    /* address of a PF: { node, strip, text, rows, vfs } */
        this.unfolded = new Set();  /* addresses of PFs */
        this.colours = new Map();   /* allocation: number */
        this.zoom = 100;
        this.canvas = el("div", { class: "picture", role: "group", "aria-label": "Devices of the node. Arrow keys go from device to device, Enter selects one." });
        this.canvas.addEventListener("keydown", event => this.onKey(event));
        for (const [type, on] of [["pointerover", true], ["pointerout", false], ["focusin", true], ["focusout", false]])
            this.canvas.addEventListener(type, event => this.highlight(on && event.target.closest("[data-holder]")?.dataset.holder));
        this.element = el("div", {}, legend(() => this.zoomBy(-1), () => this.zoomBy(1)), this.canvas);
    }

    zoomBy(step) {
        const at = ZOOMS.indexOf(this.zoom) + step;
        this.zoom = ZOOMS[Math.max(0, Math.min(ZOOMS.length - 1, at))];
        this.canvas.style.fontSize = `${this.zoom}%`;
    }

    /* Makes all boxes anew. pooled(address): whether a device is in a pool. */
    build(topology, pooled) {
        const focused = document.activeElement?.dataset?.address;
        this.boxes.clear();
        this.groups.clear();
        const all = new Map(topology.devices.map(device => [device.address, device]));
        const shown = topology.devices.filter(device => device.type !== "vf" && device.kind !== "bridge" && device.state !== "missing" &&
            (SHOWN_KINDS.includes(device.kind) || pooled(device.address)));
        const vfs = vfsByParent(topology.devices);
        const sections = new Map(topology.nodes.map(node => [node.id, []]));
        for (const device of shown) {
            const id = device.numa_node ?? -1;
            sections.set(id, [...sections.get(id) ?? [], device]);
        }
        this.canvas.replaceChildren(...[...sections].filter(([, devices]) => devices.length > 0).map(([id, devices]) =>
            el("section", { class: "numa" }, el("h3", { class: "numa-title" }, id < 0 ? "NUMA node unknown" : `NUMA node ${id}`),
                el("div", { class: "roots" }, branches(devices, all).map(root => this.rootBox(root, vfs))))));
        const first = this.stops()[0];
        if (first)
            first.tabIndex = 0;
        if (focused)
            this.boxes.get(focused)?.node.focus();
    }

    rootBox({ root, tree }, vfs) {
        return el("div", { class: "root" }, el("div", { class: "box-title" }, root.replace(/^pci/, "root complex ")),
            tree.map(item => this.itemBox(item, vfs)));
    }

    itemBox(item, vfs) {
        if (!item.device)
            return el("div", { class: "switch" }, el("div", { class: "box-title" }, `switch ${item.bridge}`), item.children.map(child => this.itemBox(child, vfs)));
        const mine = vfs.get(item.device.address) ?? [];
        return el("div", { class: "slot" }, this.deviceBox(item.device), mine.length > 0 ? this.vfsBox(item.device, mine) : null);
    }

    deviceBox(facts) {
        const node = el("button", { class: "device", type: "button", tabindex: "-1", "data-address": facts.address, onclick: () => this.onSelect(facts.address) },
            el("span", { class: "device-head" }, el("b", {}, facts.address), el("span", { class: "device-kind" }, facts.kind.toUpperCase() + (facts.module === null ? "" : ` ${facts.module}`))),
            el("span", { class: "device-name" }),
            el("span", { class: "device-state" }, el("span"), el("span", { class: "holder" })));
        this.boxes.set(facts.address, { node, facts });
        return node;
    }

    /* The VFs of a PF: a line with their number, a cell for each, and below, when it is unfolded, a box for each. */
    vfsBox(pf, vfs) {
        const strip = el("span", { class: "strip", "aria-hidden": "true" }), text = el("span", { class: "vfs-text" }), rows = el("div", { class: "vfs-rows" });
        const fold = el("button", { class: "vfs", type: "button", tabindex: "-1", onclick: () => {
            this.unfolded[this.unfolded.has(pf.address) ? "delete" : "add"](pf.address);
            this.update(this.last);
        } }, text, strip);
        this.groups.set(pf.address, { node: fold, strip, text, rows, vfs });
        return el("div", { class: "vfs-box" }, fold, rows);
    }

    /* view: { devices, planned, selected }: the devices of the daemon by address, slots of a plan by address, an address or null. */
    update(view) {
        this.last = view;
        const holders = new Set();
        for (const [address, box] of this.boxes)
            this.updateBox(address, box, view, holders);
        for (const [address, group] of this.groups)
            this.updateGroup(address, group, view, holders);
        for (const name of [...this.colours.keys()].filter(holder => !holders.has(holder)))
            this.colours.delete(name);
    }

    colourOf(holder) {
        if (!this.colours.has(holder)) {
            const used = new Set(this.colours.values());
            let colour = 0;
            while (used.has(colour))
                colour++;
            this.colours.set(holder, colour);
        }
        return colourClass(this.colours.get(holder));
    }

    updateBox(address, { node, facts }, { devices, planned, selected }, holders) {
        const device = devices.get(address) ?? { State: "missing", Pool: "", Allocation: "" };
        const slot = planned?.get(address), holder = device.Allocation;
        if (holder)
            holders.add(holder);
        set(node, "class", `device look-${lookOf(device.State)}${holder ? ` held ${this.colourOf(holder)}` : ""}${slot ? " planned" : ""}`);
        set(node, "aria-pressed", address === selected ? "true" : "false");
        set(node, "data-holder", holder || null);
        const [, name, state] = node.children;
        setText(name, [shortName(facts.name), ...device.KernelNames ?? [], linkText(device)].filter(Boolean).join(" · "));
        setText(state.firstChild, slot ? `planned as ${slot}` : [device.Pool, device.State].filter(Boolean).join(" · "));
        setText(state.lastChild, holder ?? "");
        set(node, "title", device.Reason || null);
        set(node, "aria-label", [facts.kind, address, shortName(facts.name), slot ? `planned as ${slot}` : "", device.Pool && `pool ${device.Pool}`, device.State, holder && `allocation ${holder}`]
            .filter(Boolean).join(", "));
    }

    updateGroup(pf, group, view, holders) {
        const now = group.vfs.map(({ address }) => ({ address, ...view.devices.get(address) ?? { State: "missing" } }));
        const states = new Map();
        for (const vf of now) {
            states.set(vf.State, (states.get(vf.State) ?? 0) + 1);
            if (vf.Allocation)
                holders.add(vf.Allocation);
        }
        const pools = [...new Set(now.map(vf => vf.Pool).filter(Boolean))].join(", ");
        setText(group.text, [count(now.length, "VF"), pools, [...states].map(([state, n]) => `${n} ${state}`).join(", ")].filter(Boolean).join(" · "));
        list(group.strip, now, vf => vf.address, () => el("i"), (cell, vf) => {
            set(cell, "class", `cell look-${lookOf(vf.State)}${vf.Allocation ? ` held ${this.colourOf(vf.Allocation)}` : ""}${view.planned?.has(vf.address) ? " planned" : ""}`);
            set(cell, "data-holder", vf.Allocation || null);
        });
        const open = this.unfolded.has(pf);
        set(group.node, "aria-expanded", String(open));
        set(group.node, "data-address", `vfs ${pf}`);
        list(group.rows, open ? group.vfs : [], vf => vf.address, vf => this.deviceBox(vf), (node, vf) => this.updateBox(vf.address, { node, facts: vf }, view, holders));
        if (!open)
            group.vfs.forEach(vf => this.boxes.delete(vf.address));
    }

    stops() {
        return [...this.canvas.querySelectorAll("button")];
    }

    /* One stop of the Tab key; arrows, Home and End move within the picture. */
    onKey(event) {
        const stops = this.stops(), at = stops.indexOf(document.activeElement), last = stops.length - 1;
        const to = { ArrowRight: at + 1, ArrowDown: at + 1, ArrowLeft: at - 1, ArrowUp: at - 1, Home: 0, End: last }[event.key];
        if (to === undefined || at < 0)
            return;
        event.preventDefault();
        const next = stops[Math.max(0, Math.min(last, to))];
        stops[at].tabIndex = -1;
        next.tabIndex = 0;
        next.focus();
    }

    /* All devices of an allocation stand out. */
    highlight(holder) {
        for (const node of this.canvas.querySelectorAll("[data-holder]"))
            node.classList.toggle("same", node.dataset.holder === holder);
    }
}

function vfsByParent(devices) {
    const groups = new Map();
    for (const vf of devices.filter(device => device.type === "vf"))
        groups.set(vf.above, [...groups.get(vf.above) ?? [], vf]);
    return groups;
}

/* The devices by root complex, each with a tree of { bridge, children } and { device }. A bridge with only one thing below it is left out. */
function branches(devices, all) {
    const roots = new Map();
    for (const device of devices) {
        const chain = [];
        for (let above = device.above; above !== null && all.has(above); above = all.get(above).above)
            chain.unshift(above);
        let level = roots.get(device.root) ?? roots.set(device.root, []).get(device.root);
        for (const bridge of chain) {
            let item = level.find(other => other.bridge === bridge);
            if (!item)
                level.push(item = { bridge, children: [] });
            level = item.children;
        }
        level.push({ device });
    }
    return [...roots].map(([root, tree]) => ({ root, tree: tree.map(simplify) }));
}

function simplify(item) {
    if (item.device)
        return item;
    const children = item.children.map(simplify);
    return children.length === 1 ? children[0] : { bridge: item.bridge, children };
}

function legend(smaller, larger) {
    const key = (look, text) => el("span", { class: "legend-item" }, el("i", { class: `cell look-${look}` }), text);
    return el("div", { class: "legend" }, key("available", "available"), key("allocated", "allocated: the edge has the colour of the allocation"), key("reserved", "reserved"),
        key("host", "with the host"), key("bad", "out of service"), el("span", { class: "legend-item" }, el("i", { class: "cell planned" }), "planned"),
        el("span", { class: "legend-zoom" }, button("−", smaller, { "aria-label": "Smaller" }), button("+", larger, { "aria-label": "Larger" })));
}
