/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The page: what is on it in which order, when it is drawn, and what the user is told. */
/* global cockpit */

import { el, set, setText, button, card } from "./dom.js";
import { Daemon } from "./daemon.js";
import { Picture } from "./picture.js";
import { capacityCard, updateCapacity, deviceTable, updateDeviceTable } from "./capacity.js";
import { Allocations, Jobs, Problems } from "./allocations.js";
import { Allocate } from "./allocate.js";
import { Details } from "./details.js";

const NODE_MS = 200;   /* devices come and go in groups */
const ALERTS_MAX = 4;

const STATES = {
    connecting: ["Connecting", "The page asks the daemon for its state."],
    absent: ["passthroughd does not run", "The page continues by itself when it starts: systemctl start passthroughd."],
    denied: ["You may not read what passthroughd knows", "Root and the members of the group 'passthrough' may: sudo usermod -aG passthrough USER, then log in again. Or turn on administrative access in Cockpit."],
    lost: ["The system bus cannot be reached", "Cockpit has lost it: log in again when it runs."],
};

class Page {
    constructor() {
        this.daemon = new Daemon();
        this.drawing = false;
        this.findings = [];   /* of "passthroughctl check" */
        this.planned = null;
        this.selected = null;
        this.bootTime = 0;
        this.allocations = new Allocations(this);
        this.jobs = new Jobs(this);
        this.problems = new Problems(this);
        this.details = new Details(this);
        this.allocate = new Allocate(this, planned => { this.planned = planned; this.changed(); });
        this.picture = new Picture(address => this.select("device", address));
        this.capacity = capacityCard();
        this.table = deviceTable();
        this.layOut();
        this.daemon.addEventListener("changed", () => this.changed());
        this.daemon.addEventListener("node", () => this.nodeChanged());
        cockpit.file("/proc/uptime").read().then(text => { this.bootTime = Date.now() - Number(text.split(" ")[0]) * 1000; this.changed(); }, () => {});
        this.changed();
    }

    layOut() {
        this.alerts = el("div", { class: "alerts", role: "status" });
        this.stateTitle = el("h2");
        this.stateText = el("p");
        this.stateReason = el("p", { class: "note" });
        this.stateBox = el("section", { class: "pf-v6-c-card daemon-state" }, this.stateTitle, this.stateText, this.stateReason);
        this.subtitle = el("span", { class: "note" });
        this.tableButton = button("Show as a table", () => this.showTable(this.table.hidden), { small: false });
        this.table.hidden = true;
        const { allocate, daemon } = this;
        this.open = button("Allocate", () => allocate.open(), { kind: "primary", small: false });
        this.rescan = button("Rescan", () => this.rescanNode(), { small: false });
        this.content = el("div", { class: "content" }, this.problems.element, this.jobs.element, allocate.element,
            card("Node", this.picture.element, this.table),
            this.details.element, this.allocations.element, this.capacity);
        document.body.append(el("main", { class: "page" },
            el("header", { class: "page-header" }, el("h1", {}, "Devices for guests"), this.subtitle, el("span", { class: "actions" }, this.open, this.rescan, this.tableButton)),
            this.alerts, this.stateBox, this.content));
    }

    showTable(on) {
        this.table.hidden = !on;
        this.picture.element.hidden = on;
        setText(this.tableButton.firstChild, on ? "Show as a picture" : "Show as a table");
        this.changed();
    }

    /* All changes until the next frame are drawn at once. */
    changed() {
        if (this.drawing)
            return;
        this.drawing = true;
        window.requestAnimationFrame(() => {
            this.drawing = false;
            this.draw();
        });
    }

    draw() {
        const { daemon } = this, ready = daemon.state === "ready";
        this.stateBox.hidden = ready;
        this.content.hidden = !ready;
        this.open.disabled = this.rescan.disabled = !ready;
        set(document.body, "data-state", daemon.state);
        setText(this.subtitle, ready ? `passthroughd ${daemon.manager.Version}` : "");
        if (!ready) {
            const [title, text] = STATES[daemon.state];
            setText(this.stateTitle, title);
            setText(this.stateText, text);
            setText(this.stateReason, daemon.reason);
            return;
        }
        if (this.table.hidden)
            this.picture.update({ devices: daemon.devices, planned: this.planned, selected: this.selected });
        else
            updateDeviceTable(this.table, daemon, address => this.select("device", address));
        for (const part of [this.problems, this.jobs, this.allocate, this.details, this.allocations])
            part.update();
        updateCapacity(this.capacity, daemon);
    }

    async rescanNode() {
        if (await this.act(this.daemon.call("Rescan", ""), "The daemon has read all devices again."))
            this.nodeChanged();
    }

    nodeChanged() {
        window.clearTimeout(this.nodeTimer);
        this.nodeTimer = window.setTimeout(() => this.readNode(), NODE_MS);
    }

    /* The check is for root: others cannot read what it looks at. A check that finds something ends as one that fails. */
    async readNode() {
        const reading = this.reading = {};
        const [{ document: topology, refusal }, check] = await Promise.all([
            this.daemon.ctlJson("topology"), this.daemon.permission.allowed ? this.daemon.ctlJson("check") : {}]);
        if (reading !== this.reading)
            return;
        this.findings = (check.document ?? check.refusal)?.findings ?? [];
        if (!topology) {
            if (this.daemon.state === "ready")
                this.tell(refusal.message, "danger");
            return;
        }
        this.picture.build(topology, address => this.daemon.devices.get(address)?.Pool);
        this.changed();
    }

    select(kind, key) {
        this.selected = kind === "device" ? key : null;
        this.details.select(kind, key);
        if (kind)
            this.details.element.scrollIntoView({ block: "nearest", behavior: "smooth" });
        this.changed();
    }

    /* Waits for a call and tells its failure; its result, or undefined. success: a sentence to tell. */
    act = async (promise, success) => {
        try {
            const result = await promise;
            if (success)
                this.tell(success, "success");
            return result ?? true;
        } catch (error) {
            this.tell(error.message, "danger");
            return undefined;
        }
    };

    /* look: "danger" or "success" */
    tell = (text, look) => {
        const alert = el("div", { class: `pf-v6-c-alert pf-m-inline pf-m-${look} alert` }, el("p", { class: "pf-v6-c-alert__title" }, text),
            button("Dismiss", () => alert.remove(), { kind: "link" }));
        this.alerts.prepend(alert);
        while (this.alerts.children.length > ALERTS_MAX)
            this.alerts.lastChild.remove();
    };
}

/* Cockpit's choice of light and dark; with "auto" that of the system. */
function followTheme() {
    const dark = window.matchMedia("(prefers-color-scheme: dark)");
    const apply = style => {
        style ??= window.localStorage.getItem("shell:style") ?? "auto";
        document.documentElement.classList.toggle("pf-v6-theme-dark", style === "dark" || (style === "auto" && dark.matches));
    };
    window.addEventListener("storage", event => event.key === "shell:style" && apply());
    window.addEventListener("cockpit-style", event => apply(event.detail.style));
    dark.addEventListener("change", () => apply());
    apply();
}

followTheme();
cockpit.transport.wait(() => new Page());
