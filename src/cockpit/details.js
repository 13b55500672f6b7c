/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The device or the allocation that the user selected: its facts, and its events in the journal as they come. */

import { el, list, button, card, setText } from "./dom.js";
import { shortName } from "./picture.js";
import { ownerText } from "./allocations.js";

const EVENTS_SHOWN = 200;

export class Details {
    constructor(page) {
        this.page = page;
        this.facts = el("dl", { class: "facts" });
        this.why = el("p");
        this.events = el("ol", { class: "events", "aria-label": "Events" });
        this.note = el("p", { class: "note" });
        this.element = card("Selected", button("Close", () => this.page.select(null)), this.facts, this.why, el("h3", {}, "Events"), this.note, this.events);
        this.element.hidden = true;
    }

    /* kind: "device" or "allocation", or null */
    select(kind, key) {
        this.stop?.();
        this.stop = null;
        this.kind = kind;
        this.key = key;
        this.entries = [];
        this.element.hidden = !kind;
        if (!kind)
            return;
        setText(this.element.firstChild, `${kind === "device" ? "Device" : "Allocation"} ${key}`);
        setText(this.note, "The journal has no events of it yet.");
        this.stop = this.page.daemon.followJournal(kind.toUpperCase(), key, entry => this.onEntry(entry),
            error => setText(this.note, `The journal cannot be read: ${error.message} Members of the group 'systemd-journal' can read it, and administrators.`));
        this.showEvents();
        this.update();
    }

    onEntry(entry) {
        this.entries = [entry, ...this.entries].slice(0, EVENTS_SHOWN);
        setText(this.note, "");
        this.showEvents();
    }

    showEvents() {
        list(this.events, this.entries, entry => entry.__CURSOR, entry => el("li", {},
            el("time", {}, new Date(entry.__REALTIME_TIMESTAMP / 1000).toLocaleString()), " ", el("b", {}, entry.PASSTHROUGH_EVENT), " ", String(entry.MESSAGE)));
    }

    update() {
        if (!this.kind)
            return;
        const facts = this.kind === "device" ? this.deviceFacts() : this.allocationFacts();
        list(this.facts, facts.filter(([, text]) => text), ([term]) => term, ([term]) => el("div", {}, el("dt", {}, term), el("dd")),
            (node, [, text]) => setText(node.lastChild, text));
    }

    deviceFacts() {
        const device = this.page.daemon.devices.get(this.key);
        if (!device) {
            setText(this.why, "");
            return [["State", "not on the node"]];
        }
        setText(this.why, [device.Reason, device.Remedy].filter(Boolean).join(" ") || (device.State === "available" ? "It can be allocated." : ""));
        return [["Name", device.Name], ["Pool", device.Pool], ["State", device.State], ["Allocation", device.Allocation], ["Driver", device.Driver],
            ["Kernel names", device.KernelNames.join(", ")], ["NUMA node", device.NumaNode < 0 ? "unknown" : String(device.NumaNode)],
            ["IOMMU group", device.IommuGroup < 0 ? "none" : String(device.IommuGroup)], ["VF of", device.PhysicalFunction]];
    }

    allocationFacts() {
        const allocation = this.page.daemon.allocations.get(this.key);
        setText(this.why, allocation?.Reason ?? "");
        if (!allocation)
            return [["State", "released"]];
        return [["State", allocation.State], ["Owner", ownerText(allocation.Owner)], ["Tag", allocation.Tag], ["Generation", String(allocation.Generation)], ["UUID", allocation.Id],
            ["CPUs", allocation.Cpus], ["Devices", allocation.Devices.map(([slot, address]) => `${slot || "held"} ${address}${this.nameOf(address)}`).join(", ")],
            ["Shared memory", allocation.SharedMemory.map(([name, , , members]) => `${name} with ${members.join(", ")}`).join("; ")]];
    }

    nameOf(address) {
        const device = this.page.daemon.devices.get(address);
        return device ? ` (${shortName(device.Name)})` : " (missing)";
    }
}
