/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Makes and updates elements. Text of the daemon only ever becomes text: nothing here parses HTML. */

/* el("p", { class: "a", onclick: f, title: "t" }, "text", child, null): null children and attributes are left out. */
export function el(tag, attributes = {}, ...children) {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
        if (name.startsWith("on"))
            node.addEventListener(name.slice(2), value);
        else
            set(node, name, value);
    }
    node.append(...children.flat().filter(child => child !== null && child !== undefined));
    return node;
}

/* Sets an attribute, or removes it when the value is null or false; does nothing when it has the value. */
export function set(node, name, value) {
    if (value === null || value === undefined || value === false)
        node.removeAttribute(name);
    else if (node.getAttribute(name) !== String(value))
        node.setAttribute(name, value);
}

export function setText(node, text) {
    if (node.textContent !== text)
        node.textContent = text;
}

/* Makes the children of parent those of items, in their order. The element of an item is kept while its key is there, so that it keeps
 * focus, selection and scroll position. update(node, item) is called for each. */
export function list(parent, items, keyOf, make, update) {
    parent.kept ??= new Map();
    const old = parent.kept;
    parent.kept = new Map();
    let at = parent.firstElementChild;
    for (const item of items) {
        const key = keyOf(item);
        const node = old.get(key) ?? make(item);
        old.delete(key);
        parent.kept.set(key, node);
        update?.(node, item);
        if (node === at)
            at = at.nextElementSibling;
        else
            parent.insertBefore(node, at);
    }
    for (const node of old.values())
        node.remove();
}

export function button(text, onclick, { kind = "secondary", small = true, ...attributes } = {}) {
    return el("button", { class: `pf-v6-c-button pf-m-${kind}${small ? " pf-m-small" : ""}`, type: "button", "data-action": text, onclick, ...attributes },
        el("span", { class: "pf-v6-c-button__text" }, text));
}

/* A card with a heading; hidden while it has nothing to show. */
export function card(title, ...content) {
    const id = `card-${title.toLowerCase().replaceAll(/\W+/g, "-")}`;
    return el("section", { class: "pf-v6-c-card", "aria-labelledby": id },
        el("h2", { class: "pf-v6-c-card__title-text card-title", id }, title),
        el("div", { class: "card-body" }, ...content));
}

/* Columns: [title, ...]. Returns the table; its body is table.tBodies[0]. */
export function table(caption, columns) {
    return el("table", { class: "pf-v6-c-table pf-m-grid-md pf-m-compact" },
        el("caption", { class: "visually-hidden" }, caption),
        el("thead", { class: "pf-v6-c-table__thead" },
            el("tr", { class: "pf-v6-c-table__tr" }, columns.map(title => el("th", { class: "pf-v6-c-table__th", scope: "col" }, title)))),
        el("tbody", { class: "pf-v6-c-table__tbody" }));
}

export function row(cells) {
    return el("tr", { class: "pf-v6-c-table__tr" }, cells.map(cell => el("td", { class: "pf-v6-c-table__td" }, cell)));
}

/* Shows rows of texts or elements in a table. A cell with the same text is not touched. */
export function fillRow(tr, cells) {
    cells.forEach((cell, i) => {
        if (cell instanceof Node) {
            if (tr.cells[i].firstChild !== cell)
                tr.cells[i].replaceChildren(cell);
        } else
            setText(tr.cells[i], cell);
    });
}

/* A bar of parts [{ word, amount, look }] of a total, with its numbers as text. */
export function bar() {
    return el("div", { class: "bar", role: "img" }, el("div", { class: "bar-parts" }), el("span", { class: "bar-text" }));
}

export function fillBar(node, total, parts, shown = String) {
    const text = parts.filter((part, i) => i < 2 || part.amount > 0).map(part => `${shown(part.amount)} ${part.word}`).join(", ");
    list(node.firstChild, parts, part => part.word, part => el("div", { class: `bar-part look-${part.look}` }),
        (child, part) => { child.style.width = total > 0 ? `${Math.min(100, part.amount / total * 100)}%` : "0"; });
    setText(node.lastChild, text);
    set(node, "aria-label", text);
}

export function label(look) {
    return el("span", { class: `state look-${look}` });
}

/* A dialog with a title, a body and buttons; it takes itself away when it is closed. The first button closes it. */
export function dialog(title, body, buttons) {
    const node = el("dialog", { class: "pf-v6-c-modal-box", "aria-label": title, onclose: () => node.remove() },
        el("h1", { class: "pf-v6-c-modal-box__title dialog-title" }, title),
        el("div", { class: "dialog-body" }, body),
        el("div", { class: "dialog-buttons" }, buttons, button("Close", () => node.close(), { kind: "link", small: false })));
    document.body.append(node);
    node.showModal();
    return node;
}

const UNITS = ["bytes", "KiB", "MiB", "GiB", "TiB"];

export function bytes(n) {
    let unit = 0;
    for (; n >= 1024 && unit < UNITS.length - 1; unit++)
        n /= 1024;
    return `${Math.round(n * 10) / 10} ${UNITS[unit]}`;
}

/* "1 device", "2 devices" */
export function count(n, noun) {
    return `${n} ${noun}${n === 1 ? "" : "s"}`;
}
