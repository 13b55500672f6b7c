/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Allocations with their actions, jobs with their steps, and problems with their remedies. */

import { el, set, setText, list, button, card, table, row, dialog, bytes, count, label } from "./dom.js";
import { BAD_STATES, colourClass } from "./picture.js";

const HOUR = 3600;
const DEVICES_SHOWN = 8;
const WITHDRAWN_SHOWN = 4;

export function ownerText(uid) {
    return uid === 0 ? "root" : `uid ${uid}`;
}

function memoryText(memory) {
    return memory.map(([node, size]) => `${bytes(size)} on node ${node}`).join(", ");
}

/* page: { daemon, findings, bootTime, act(promise), rescanNode(), select(kind, key) } */
export class Allocations {
    constructor(page) {
        this.page = page;
        this.table = table("Allocations", ["Name", "State", "Owner, tag", "Devices", "CPUs, memory", "Actions"]);
        set(this.table.tHead.rows[0].cells[3], "class", "pf-v6-c-table__th wide");
        this.empty = el("p", {}, "There is no allocation.");
        this.element = card("Allocations", this.empty, this.table);
    }

    update() {
        const { daemon } = this.page, all = [...daemon.allocations.values()];
        this.empty.hidden = all.length > 0;
        this.table.hidden = all.length === 0;
        list(this.table.tBodies[0], all, allocation => allocation.Name, allocation => this.makeRow(allocation.Name), (tr, allocation) => this.updateRow(tr, allocation));
    }

    makeRow(name) {
        const open = el("button", { class: "pf-v6-c-button pf-m-link pf-m-inline", type: "button", onclick: () => this.page.select("allocation", name) }, name);
        const tr = row([el("div", { class: "name" }, el("i", { "aria-hidden": "true" }), open), el("div", {}, label("host"), el("div", { class: "note" })), el("div", {}, el("div"), el("div", { class: "note" })),
            el("details", { open: "" }, el("summary"), el("ul", { class: "plain" })), "", el("div", { class: "actions" })]);
        set(tr, "data-allocation", name);
        return tr;
    }

    updateRow(tr, allocation) {
        const colour = this.page.picture.colours.get(allocation.Name);
        set(tr.cells[0].firstChild.firstChild, "class", colour === undefined ? null : `cell held ${colourClass(colour)}`);
        const [state, reason] = tr.cells[1].firstChild.children, [owner, tag] = tr.cells[2].firstChild.children;
        setText(state, allocation.State);
        set(state, "class", `state look-${allocation.State === "failed" ? "bad" : allocation.State === "reserved" ? "reserved" : "allocated"}`);
        setText(reason, [allocation.Domain && `The guest ${allocation.Domain} runs.`, allocation.Reason, this.leaseText(allocation)].filter(Boolean).join(" "));
        setText(owner, ownerText(allocation.Owner));
        setText(tag, allocation.Tag);
        this.updateDevices(tr.cells[3].firstChild, [...allocation.Devices, ...allocation.Services.map(([service, endpoint, n]) => [`${n} of ${service}`, endpoint])]);
        setText(tr.cells[4], [allocation.Cpus && `CPUs ${allocation.Cpus}`, memoryText(allocation.Memory)].filter(Boolean).join("; "));
        list(tr.cells[5].firstChild, this.actionsOf(allocation), ([text]) => text, ([text, run]) =>
            button(text, () => run(this.page.daemon.allocations.get(allocation.Name)), { kind: text === "Release" ? "secondary pf-m-danger" : "secondary", "aria-label": `${text} ${allocation.Name}` }));
    }

    /* Many devices are folded, until the user unfolds them. */
    updateDevices(details, devices) {
        const [summary, items] = details.children, many = devices.length > DEVICES_SHOWN;
        if (many === summary.hidden || !items.hasChildNodes())
            details.open = !many;
        summary.hidden = !many;
        setText(summary, count(devices.length, "device"));
        list(items, devices, String, ([slot, address]) => el("li", {}, `${slot || "held"} ${address}`));
    }

    leaseText({ LeaseEnd }) {
        return LeaseEnd ? `The lease ends at ${new Date(this.page.bootTime + LeaseEnd / 1000).toLocaleTimeString()}.` : "";
    }

    actionsOf({ State, Cpus, Devices }) {
        const { daemon, act } = this.page, settled = ["ready", "in-use"].includes(State);
        const changed = State === "failed" && Devices.some(([, address]) => daemon.devices.get(address)?.State === "hardware-changed");
        return [
            State === "reserved" && ["Prepare", a => act(daemon.call("Prepare", "st", a.Name, a.Generation))],
            State === "reserved" && ["Renew for an hour", a => act(daemon.call("Renew", "stu", a.Name, a.Generation, HOUR))],
            changed && ["Accept", a => act(daemon.call("Accept", "st", a.Name, a.Generation))],
            settled && Cpus && ["Document", a => this.showDocument(a)],
            settled && ["Attach", a => this.attach(a)],
            settled && Devices.length > 0 && ["Detach", a => this.detach(a)],
            !["releasing", "preparing"].includes(State) && ["Release", a => this.release(a)],
        ].filter(Boolean);
    }

    /* Asks first, and names the guest. */
    release(allocation) {
        const { daemon, act } = this.page, { Name, Generation, Domain: guest } = allocation;
        const box = dialog(`Release ${Name}?`, [
            el("p", {}, guest ? `The guest '${guest}' runs with it: shut it down first. The daemon refuses to release what a running guest has.`
                : `No guest runs with '${Name}'. A guest that is defined with it cannot start after this.`),
            el("p", {}, `${count(allocation.Devices.length, "device")} go back: ${allocation.Devices.map(([, address]) => address).join(", ") || "none"}.`)],
        [button(`Release ${Name}`, () => { act(daemon.call("Release", "st", Name, Generation)); box.close(); }, { kind: "danger", small: false })]);
    }

    async showDocument({ Name }) {
        const { daemon, act, tell } = this.page;
        const text = await act(daemon.ctl("xml", Name));
        if (!text)
            return;
        const area = el("textarea", { class: "document", readonly: "", rows: 20, "aria-label": `Domain document of ${Name}` });
        area.value = text;
        area.setSelectionRange(0, 0);
        const box = dialog(`Domain of ${Name}`, area, [
            button("Copy", () => navigator.clipboard.writeText(text).then(() => tell("Copied.", "success"), () => area.select()), { kind: "primary", small: false }),
            button("Define in libvirt", () => { act(daemon.ctl("define", Name), `libvirt has the domain '${Name}'.`); box.close(); }, { small: false })]);
    }

    attach({ Name, Generation }) {
        const { daemon, act } = this.page;
        const pool = el("select", { "aria-label": "Pool", class: "field" }, [...daemon.pools.values()].map(p => el("option", { value: p.Name }, `${p.Name} (${p.Available} free)`)));
        const number = el("input", { type: "number", min: 1, max: 64, value: 1, "aria-label": "Devices", class: "field" });
        const box = dialog(`Attach devices to ${Name}`, el("div", { class: "fields" }, pool, number), [button("Attach", () => {
            act(daemon.call("Attach", "sta{sv}", Name, Generation, { devices: { t: "a(su)", v: [[pool.value, Number(number.value)]] } }));
            box.close();
        }, { kind: "primary", small: false })]);
    }

    detach({ Name, Generation, Devices }) {
        const { daemon, act } = this.page;
        const slot = el("select", { "aria-label": "Slot", class: "field" }, Devices.filter(([name]) => name).map(([name, address]) => el("option", { value: name }, `${name}: ${address}`)));
        const box = dialog(`Detach a device from ${Name}`, slot, [button("Detach", () => {
            act(daemon.call("Detach", "sts", Name, Generation, slot.value));
            box.close();
        }, { kind: "danger", small: false })]);
    }
}

export class Jobs {
    constructor(page) {
        this.page = page;
        this.jobs = el("div", { class: "jobs" });
        this.element = card("Jobs", this.jobs);
    }

    update() {
        const { daemon } = this.page, all = [...daemon.jobs.values(), ...daemon.ended];
        this.element.hidden = all.length === 0;
        list(this.jobs, all, job => job, job => el("div", { class: "job", "data-job": job.Id },
            el("details", {}, el("summary", {}, el("b", {}, `${job.Verb} ${job.Subject}`), " ", el("span", { class: "job-state" })), el("ol")),
            el("progress", { "aria-label": `Progress of ${job.Verb} ${job.Subject}` }), el("div", { class: "note" })), (node, job) => {
            const [details, progress, note] = node.children;
            set(node, "class", `job ${job.result ?? "runs"}`);
            setText(details.firstChild.lastChild, job.result ?? `step ${Math.min(job.StepsDone + 1, job.StepsTotal)} of ${job.StepsTotal}`);
            progress.max = Math.max(1, job.StepsTotal);
            progress.value = job.result === "done" ? progress.max : job.StepsDone;
            progress.hidden = Boolean(job.result);
            const now = job.result ? [] : Object.entries(job.DeviceSteps ?? {}).map(([address, step]) => `${address}: ${step}`);
            setText(note, job.Message || (now.length > 0 ? now.join("; ") : job.result ? "" : job.Step));
            list(details.lastChild, job.steps.map((step, i) => ({ step, i })), ({ i }) => i, ({ step }) => el("li", {}, step));
        });
    }
}

/* What needs a look, first on the page: what is wrong with the daemon and its configuration, failed allocations, devices out of service,
 * devices that are gone, and what "passthroughctl check" finds, its warnings folded. */
export class Problems {
    constructor(page) {
        this.page = page;
        this.problems = el("div", { class: "problems" });
        this.warnings = el("div", { class: "problems" });
        this.fold = el("details", {}, el("summary"), this.warnings);
        this.element = card("Problems", this.problems, this.fold);
    }

    find() {
        const { daemon } = this.page, found = this.managerProblems();
        for (const allocation of daemon.allocations.values()) {
            if (allocation.Reason || allocation.State === "failed")
                found.push({ key: `allocation ${allocation.Name}`, title: `${allocation.Name}: ${allocation.State}`, text: allocation.Reason, buttons: ["Release"], allocation });
            for (const [, address] of allocation.Devices.filter(([, address]) => !daemon.devices.has(address)))
                found.push({ key: `missing ${address}`, title: `${address}: missing`, text: `'${allocation.Name}' has the device, but it is not on the node.`,
                    remedy: "Plug it in again and rescan, or release the allocation.", buttons: ["Rescan", "Release"], allocation });
        }
        const bad = new Map();   /* the VFs of a PF, and a group, have one reason */
        for (const device of daemon.devices.values()) {
            if (!BAD_STATES.includes(device.State))
                continue;
            const key = `${device.State} ${device.Reason}`;
            bad.set(key, [...bad.get(key) ?? [], device]);
        }
        for (const [key, devices] of bad)
            found.push(this.deviceProblem(key, devices));
        return found;
    }

    deviceProblem(key, devices) {
        const { daemon } = this.page;
        /* The other ones are in its group, or its PF or VFs. */
        const { Address, State, Reason, Remedy, Allocation } = devices.find(device => device.Reason.includes(device.Address)) ?? devices[0];
        const allocation = daemon.allocations.get(Allocation);
        const buttons = { "quarantined": ["Clear quarantine"], "hardware-changed": ["Accept", "Release"], "contested": [] }[State] ?? ["Rescan"];
        return { key, title: `${Address}${devices.length > 1 ? ` and ${devices.length - 1} more` : ""}: ${State}`, text: Reason, remedy: Remedy,
            buttons: allocation ? buttons : buttons.filter(text => !["Accept", "Release"].includes(text)), allocation, address: Address };
    }

    managerProblems() {
        const { ReadOnly, NoneOffered, Withdrawn = [], ConfigProblems = [], EndpointProblems = [], LibvirtProblem } = this.page.daemon.manager;
        const reload = ["Reload the configuration"];
        return [
            { title: "The daemon changes nothing", text: ReadOnly, buttons: [] },
            { title: "No device is offered", text: NoneOffered, buttons: reload },
            { title: "Devices are no longer offered", text: this.byPool(Withdrawn),
                remedy: "Correct the configuration, then reload it.", buttons: reload },
            { title: "The configuration has problems", text: ConfigProblems.join("\n"), buttons: reload },
            { title: "Services do not answer", text: EndpointProblems.join("\n"), buttons: [] },
            { title: "It is unknown which guests run", text: LibvirtProblem, buttons: [] },
        ].filter(problem => problem.text).map(problem => ({ key: problem.title, ...problem }));
    }

    /* Devices [address, pool]: a line for each pool, with its first devices. */
    byPool(devices) {
        return [...new Set(devices.map(([, pool]) => pool))].map(pool => {
            const addresses = devices.filter(device => device[1] === pool).map(([address]) => address);
            const more = addresses.length - WITHDRAWN_SHOWN;
            return `${count(addresses.length, "device")} of pool ${pool}: ${addresses.slice(0, WITHDRAWN_SHOWN).join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
        }).join("\n");
    }

    /* Those of the daemon are in properties. */
    findings(result) {
        const told = this.page.daemon.manager.ConfigProblems ?? [];
        return this.page.findings.filter(finding => finding.result === result && finding.check !== "daemon" && !told.includes(finding.message))
            .map(({ check, message, remedy }) => ({ key: `${check} ${message}`, title: check, text: message, remedy, buttons: [] }));
    }

    update() {
        const found = [...this.find(), ...this.findings("failure")], warnings = this.findings("warning");
        this.element.hidden = found.length + warnings.length === 0;
        this.fold.hidden = warnings.length === 0;
        setText(this.fold.firstChild, `The node works, with ${count(warnings.length, "warning")}`);
        this.show(this.problems, "problem", found);
        this.show(this.warnings, "warning", warnings);
    }

    show(node, look, problems) {
        list(node, problems, problem => `${problem.key} ${problem.buttons}`, problem => {
            const child = el("div", { class: look }, el("b", {}), el("p"), el("p", { class: "note" }), el("div", { class: "actions" }));
            child.lastChild.append(...problem.buttons.map(text => button(text, () => this.run(text, child.problem), { "aria-label": `${text}: ${problem.title}` })));
            return child;
        }, (child, problem) => {
            child.problem = problem;
            setText(child.children[0], problem.title);
            setText(child.children[1], problem.text);
            setText(child.children[2], problem.remedy ?? "");
        });
    }

    run(text, { address, allocation }) {
        const { daemon, act } = this.page;
        switch (text) {
        case "Clear quarantine": return act(daemon.call("ClearQuarantine", "s", address));
        case "Accept": return act(daemon.call("Accept", "st", allocation.Name, allocation.Generation));
        case "Release": return this.page.allocations.release(allocation);
        case "Reload the configuration": return act(daemon.call("Reload", ""), "The daemon has read its configuration again.");
        default: return this.page.rescanNode();
        }
    }
}
