/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The form of an allocation. What it would get is planned while the user types, and shown on the picture. */

import { el, list, button, card, setText } from "./dom.js";

const TYPING_MS = 250;
const REPLAN_MS = 1000;   /* at least, between plans that a change of the node causes */
const GIB = 2 ** 30;

/* What each part of a plan's score says, with its amount; 0 costs nothing. As "passthroughctl plan" says it. */
const COSTS = {
    numa_nodes: n => `${n} NUMA node${s(n)}`,
    off_node: n => `${n} device${s(n)} off these nodes`,
    remote: n => `${n} of them on another known node`,
    worst_distance: d => `NICs at most ${d} from their GPUs`,
    total_distance: n => `GPUs and their NICs ${n} apart in all`,
    nic_off_node: n => `${n} NIC${s(n)} off these nodes`,
    gpu_distance: n => `GPUs ${n} apart in all`,
    node_distance: n => `nodes ${n} apart in all`,
    spoiled: n => `${n} free device${s(n)} on these nodes`,
    held: n => `${n} device${s(n)} held only for the IOMMU group`,
    left_over: n => `${n} device${s(n)} left free or held on these switches plus these nodes`,
    vf_load: n => `${n} pair${s(n)} of VFs on one PF`,
    vf_left: n => `${n} VF${s(n)} left free or held on these PFs`,
    broken: n => `${n} GPU${s(n)} of the larger NVLink partitions that this breaks, added up`,
};

function s(n) {
    return n === 1 ? "" : "s";
}

function costText(score) {
    return Object.entries(score).filter(([, amount]) => amount).map(([part, amount]) => COSTS[part]?.(amount) ?? `${part} ${amount}`).join(", ") || "nothing";
}

export class Allocate {
    /* page: as in allocations.js; onPlan(map of slots by address, or null) */
    constructor(page, onPlan) {
        this.page = page;
        this.onPlan = onPlan;
        this.timer = null;
        this.pools = el("div", { class: "fields" });
        this.fields = {
            name: el("input", { name: "name", class: "field", required: "", maxlength: 63, pattern: "[A-Za-z0-9][A-Za-z0-9_.\\-]*", autocomplete: "off" }),
            cpus: el("input", { name: "cpus", class: "field", type: "number", min: 0, max: 4096 }),
            memory: el("input", { name: "memory", class: "field", type: "number", min: 0, step: "any" }),
            pages: choice("pages", { 0: "ordinary", 2097152: "2 MiB", 1073741824: "1 GiB" }),
            numa: choice("numa", { legacy: "legacy", single: "single", required: "required", socket: "socket", preferred: "preferred" }),
            hold: choice("hold", { 0: "now", 600: "reserve for 10 minutes", 3600: "reserve for an hour" }),
            tag: el("input", { name: "tag", class: "field", maxlength: 255, autocomplete: "off" }),
        };
        const { name, cpus, memory, pages, numa, hold, tag } = this.fields;
        this.result = el("div", { class: "plan", role: "status" });
        this.form = el("form", { oninput: () => this.replan(TYPING_MS), onsubmit: event => { event.preventDefault(); this.submit(); } },
            el("div", { class: "fields" }, field("Name", name), field("vCPUs", cpus), field("Memory, GiB", memory), field("Pages", pages),
                field("NUMA policy", numa), field("Prepare", hold), field("Tag", tag)),
            this.pools, this.result, el("div", { class: "actions" }, el("button", { class: "pf-v6-c-button pf-m-primary", type: "submit" }, "Allocate"),
                button("Cancel", () => this.close(), { kind: "link", small: false })));
        this.element = card("Allocate", this.form);
        this.element.hidden = true;
    }

    open() {
        this.element.hidden = false;
        this.update();
        this.element.scrollIntoView();   /* with the picture below it */
        this.fields.name.focus();
    }

    close() {
        this.element.hidden = true;
        this.form.reset();
        this.show([]);
        this.onPlan(null);
    }

    update() {
        if (this.element.hidden)
            return;
        const { daemon } = this.page;
        list(this.pools, [...daemon.pools.values()], pool => pool.Name,
            pool => field(pool.Name, el("input", { class: "field", type: "number", min: 0, max: 64, "data-pool": pool.Name, placeholder: "0" }), el("span", { class: "note" })),
            (node, pool) => setText(node.lastChild, `${pool.Available} of ${pool.Total} free`));
        if (daemon.manager.Epoch !== this.epoch) {
            this.epoch = daemon.manager.Epoch;
            this.replan(REPLAN_MS, true);
        }
    }

    counts() {
        return [...this.pools.querySelectorAll("input")].map(input => [input.dataset.pool, Number(input.value)]).filter(([, n]) => n > 0);
    }

    /* A change of the node does not put off a plan that is due. */
    replan(ms, lazily = false) {
        if (lazily && this.timer !== null)
            return;
        window.clearTimeout(this.timer);
        this.timer = window.setTimeout(() => { this.timer = null; this.plan(); }, ms);
    }

    async plan() {
        const { cpus, memory, pages, numa } = this.fields, counts = this.counts();
        const asked = this.asked = {};
        if (this.element.hidden)
            return;
        if (counts.length === 0 && !Number(cpus.value)) {
            this.show([]);
            this.onPlan(null);
            return;
        }
        const args = counts.map(([pool, n]) => `${pool}=${n}`);
        if (Number(cpus.value))
            args.push("--cpus", cpus.value);
        if (Number(memory.value))
            args.push("--memory", String(Math.round(memory.value * GIB)));
        if (Number(pages.value))
            args.push("--page-size", pages.value);
        const { document: plan, refusal } = await this.page.daemon.ctlJson("plan", ...args, "--numa", numa.value);
        if (asked !== this.asked || this.element.hidden)
            return;
        this.show(plan ? planLines(plan) : [[refusal.message, "bad"], [refusal.remedy], [refusal.nearest]]);
        this.onPlan(plan ? new Map(plan.devices.map(device => [device.address, device.slot ?? device.role])) : null);
    }

    /* lines: [text, look]; those without text are left out */
    show(lines) {
        this.result.replaceChildren(...lines.filter(([text]) => text).map(([text, look]) => el("p", look ? { class: `plan-${look}` } : {}, text)));
    }

    async submit() {
        const { name, cpus, memory, pages, numa, hold, tag } = this.fields, { daemon, act } = this.page;
        const request = { numa: { t: "s", v: numa.value } };
        if (this.counts().length > 0)
            request.devices = { t: "a(su)", v: this.counts() };
        if (Number(cpus.value))
            request.cpus = { t: "u", v: Number(cpus.value) };
        if (Number(memory.value))
            request.memory = { t: "t", v: Math.round(memory.value * GIB) };
        if (Number(pages.value))
            request["page-size"] = { t: "t", v: Number(pages.value) };
        if (Number(hold.value))
            request.hold = { t: "u", v: Number(hold.value) };
        if (tag.value)
            request.tag = { t: "s", v: tag.value };
        if (await act(daemon.call("Allocate", "sa{sv}", name.value, request)))
            this.close();
    }
}

function planLines(plan) {
    const pair = device => plan.pairs.filter(p => p.nic === device.address).map(p => `, ${p.distance} to ${plan.devices.find(d => d.address === p.gpu)?.slot ?? p.gpu}`).join("");
    const memory = Object.entries(plan.memory).map(([node, size]) => `${Math.round(size / GIB * 10) / 10} GiB on node ${node}`).join(", ");
    return [
        [`It fits: ${plan.devices.map(device => `${device.slot ?? device.role} ${device.address}${pair(device)}`).join("; ") || "no devices"}.`, "good"],
        [plan.cpus && `CPUs ${plan.cpus}; ${memory}.`],
        [`Cost: ${costText(plan.score)}.`],
        [plan.runner_up && `Runner-up: ${plan.runner_up.devices.join(", ")} on NUMA node ${plan.runner_up.numa_nodes.join(", ")}. ${plan.runner_up.reason}`],
        [plan.steps.length > 0 && `${plan.steps.length} steps, from "${plan.steps[0]}" to "${plan.steps.at(-1)}".`],
    ];
}

function choice(name, options) {
    return el("select", { name, class: "field" }, Object.entries(options).map(([value, text]) => el("option", { value }, text)));
}

function field(text, input, ...more) {
    return el("label", {}, el("span", {}, text), input, ...more);
}
