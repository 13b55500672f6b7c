/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the daemon tells by D-Bus: its objects, kept up to date by its signals, and its methods. Nothing is polled.
 *
 * The daemon may come and go. GetManagedObjects is called when the name has a new owner; signals change the objects from then on. */
/* global cockpit */

const NAME = "org.passthroughd1";
const ROOT = "/org/passthroughd1";
const PROPERTIES = "org.freedesktop.DBus.Properties";
const OBJECT_MANAGER = "org.freedesktop.DBus.ObjectManager";
const JOBS_KEPT = 3;      /* that have ended */
const STEPS_KEPT = 400;   /* of one job */

/* By the last word of the interface: the map that has the objects, and the property that names one. */
const KINDS = {
    Device: ["devices", "Address"],
    Allocation: ["allocations", "Name"],
    Job: ["jobs", "Id"],
    Pool: ["pools", "Name"],
    Node: ["nodes", "Id"],
};

/* Sends "changed" after each change, and "node" when devices, or problems of the manager, came or went: what ctl() prints of the node is
 * another text then. */
export class Daemon extends EventTarget {
    constructor() {
        super();
        this.clear();
        this.ended = [];
        this.state = "connecting";   /* or "ready", "absent", "denied", "lost"; then reason says why */
        this.reason = "";
        this.permission = cockpit.permission({ admin: true });
        let admin = null;
        this.permission.addEventListener("changed", () => {
            if (admin === null)
                this.tellNode(this.state === "ready");   /* what root alone may read */
            else if (admin !== this.permission.allowed)
                this.connect();
            admin = this.permission.allowed;
        });
        /* A channel to a name without an owner is closed by some bridges. */
        this.bus = cockpit.dbus("org.freedesktop.DBus", { bus: "system" });
        this.bus.subscribe({ interface: "org.freedesktop.DBus", member: "NameOwnerChanged", arg0: NAME }, (path, iface, member, [, , owner]) => {
            if (owner && this.closed)
                this.connect();
        });
        this.connect();
    }

    clear() {
        this.paths = new Map();   /* object path: { map, key, properties } */
        for (const [map] of Object.values(KINDS))
            this[map] = new Map();
        this.manager = {};
    }

    /* A new channel, with the rights that the user has in Cockpit now. */
    connect() {
        this.closed = false;
        this.client?.close();
        const client = this.client = cockpit.dbus(NAME, { bus: "system", superuser: "try" });
        this.read = null;
        client.subscribe({ path_namespace: ROOT }, (path, iface, member, args) => {
            if (client === this.client)
                this.onSignal(path, iface, member, args);
        });
        client.addEventListener("owner", (event, owner) => {
            if (client === this.client)
                this.onOwner(owner);
        });
        client.addEventListener("close", (event, options) => {
            if (client !== this.client)
                return;
            this.closed = true;
            this.read = null;
            if (options.problem === "not-found")
                this.setState("absent");
            else
                this.setState("lost", options.message || options.problem);
        });
    }

    setState(state, reason = "") {
        this.state = state;
        this.reason = reason;
        this.tellChange();
    }

    tellChange() {
        this.dispatchEvent(new Event("changed"));
    }

    async onOwner(owner) {
        if (!owner) {
            this.read = null;
            this.setState("absent");
            return;
        }
        await this.readAll();
    }

    /* The types are told, because a bridge that must ask for them answers a caller without rights with another error.
     * Signals that come before the reply wait for it, because some bridges send a reply after signals that followed it. Those that the
     * reply knows already change nothing: the last of them has the same values. */
    async readAll() {
        const reading = this.read = { signals: [] };
        try {
            const [[objects], [manager]] = await Promise.all([
                this.client.call(ROOT, OBJECT_MANAGER, "GetManagedObjects", [], { type: "" }),
                this.client.call(ROOT, PROPERTIES, "GetAll", [`${NAME}.Manager`], { type: "s" })]);
            if (reading !== this.read)
                return;
            this.clear();
            for (const [path, interfaces] of Object.entries(objects))
                this.add(path, interfaces);
            this.manager = plain(manager);
            this.read = true;
            reading.signals.forEach(signal => this.onSignal(...signal));
            this.setState("ready");
            this.dispatchEvent(new Event("node"));
        } catch (error) {
            if (reading !== this.read)
                return;
            this.clear();
            const denied = /AccessDenied|InteractiveAuthorizationRequired/.test(error.name ?? "") || error.problem === "access-denied";
            this.setState(denied ? "denied" : "absent", error.message);
        }
    }

    add(path, interfaces) {
        for (const [iface, variants] of Object.entries(interfaces)) {
            const kind = iface.startsWith(`${NAME}.`) && KINDS[iface.slice(NAME.length + 1)];
            if (!kind)
                continue;
            const [map, name] = kind, properties = plain(variants);
            if (map === "jobs")
                properties.steps = [];
            this.paths.set(path, { map, key: properties[name], properties });
            this[map].set(properties[name], properties);
            this.noteStep(properties);
        }
    }

    remove(path) {
        const object = this.paths.get(path);
        if (!object)
            return;
        this.paths.delete(path);
        if (this[object.map].get(object.key) === object.properties)
            this[object.map].delete(object.key);
    }

    onSignal(path, iface, member, args) {
        if (this.read?.signals)
            this.read.signals.push([path, iface, member, args]);
        if (this.read !== true)
            return;
        if (member === "InterfacesAdded") {
            this.add(args[0], args[1]);
            this.tellNode(args[0].startsWith(`${ROOT}/device/`));
        } else if (member === "InterfacesRemoved") {
            this.remove(args[0]);
            this.tellNode(args[0].startsWith(`${ROOT}/device/`));
        } else if (member === "PropertiesChanged" && path === ROOT) {
            Object.assign(this.manager, plain(args[1]));
            this.tellNode(Object.keys(args[1]).some(name => name !== "Epoch"));
        } else if (member === "PropertiesChanged") {
            const object = this.paths.get(path);
            if (!object)
                return;
            Object.assign(object.properties, plain(args[1]));
            this.noteStep(object.properties);
        } else if (member === "JobRemoved")
            this.endJob(args[0], args[2]);
        else
            return;
        this.tellChange();
    }

    tellNode(differs) {
        if (differs)
            this.dispatchEvent(new Event("node"));
    }

    noteStep(job) {
        if (job.Step && job.steps && job.steps.at(-1) !== job.Step && job.steps.length < STEPS_KEPT)
            job.steps.push(job.Step);
    }

    /* The last jobs that ended stay to be seen. */
    endJob(id, result) {
        const job = this.jobs.get(id);
        if (!job)
            return;
        job.result = result;
        this.ended = [job, ...this.ended].slice(0, JOBS_KEPT);
    }

    /* A method of the manager; the reply's arguments. Throws an Error with a sentence. */
    async call(method, type, ...args) {
        try {
            return await this.client.call(ROOT, `${NAME}.Manager`, method, args, { type });
        } catch (error) {
            throw new Error(withHint(error));
        }
    }

    /* What passthroughctl prints of the node, a plan or a document. These replies are descriptors when they are long, and no cockpit.dbus()
     * can read one: the bridge of Cockpit 287 passes its number (build_json() in cockpitdbusjson.c), that of 337 has no type for it (BusType
     * in systemd_ctypes/bustypes.py). What changes while the page is open is in properties. */
    async ctl(...args) {
        let text = "";
        try {
            const process = cockpit.spawn(["passthroughctl", ...args], { superuser: "try", err: "message" });
            process.stream(data => { text += data; });
            await process;
            return text;
        } catch (error) {
            throw Object.assign(new Error(text.trim() || error.message), { text });
        }
    }

    /* { document }, or { refusal } of the daemon. */
    async ctlJson(...args) {
        try {
            return { document: JSON.parse(await this.ctl(...args, "--json")) };
        } catch (error) {
            try {
                return { refusal: JSON.parse(error.text) };
            } catch {
                return { refusal: { message: error.message } };
            }
        }
    }

    /* Events in the journal with PASSTHROUGH_DEVICE or PASSTHROUGH_ALLOCATION, the last ones and then each new one, until the returned
     * function is called. Only the user of the daemon, and root, can send them. */
    followJournal(field, value, onEntry, onError) {
        let process = null, rest = "", stopped = false;
        const start = uid => {
            if (stopped)
                return;
            process = cockpit.spawn(["journalctl", "--output=json", "--lines=50", "--follow", `PASSTHROUGH_${field}=${value}`, "_UID=0", `_UID=${uid}`],
                { superuser: "try", err: "message" });
            process.stream(data => {
                const lines = (rest + data).split("\n");
                rest = lines.pop();
                lines.filter(line => line.startsWith("{")).map(line => JSON.parse(line)).filter(entry => entry.PASSTHROUGH_EVENT).forEach(onEntry);
            });
            process.catch(error => stopped || onError(error));
        };
        const bus = cockpit.dbus("org.freedesktop.DBus", { bus: "system" });
        bus.call("/org/freedesktop/DBus", "org.freedesktop.DBus", "GetConnectionUnixUser", [NAME], { type: "s" })
            .then(([uid]) => start(uid), () => start(0)).finally(() => bus.close());
        return () => {
            stopped = true;
            process?.close("terminated");
        };
    }
}

/* The properties { name: { t, v } } as { name: value }. */
function plain(variants) {
    return Object.fromEntries(Object.entries(variants).map(([name, variant]) => [name, variant.v]));
}

function withHint(error) {
    if (/InteractiveAuthorizationRequired|AccessDenied/.test(error.name ?? ""))
        return `${error.message} Turn on administrative access in Cockpit, or ask an administrator for a rule of polkit (man 5 org.passthroughd1).`;
    return error.message || String(error);
}
