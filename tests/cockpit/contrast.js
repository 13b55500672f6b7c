/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The contrast of what the page shows now, by WCAG 2.2: of each text against the ground below it (1.4.3), and of each edge that tells something
 * against the grounds on both sides of it (1.4.11). Returns [{ kind, what, ratio, colours }], the lowest of each kind and class. Separators
 * between cards and rows tell nothing. */
const EDGES = ".numa, .root, .switch, .device, .vfs, .cell, .state, .bar-parts, .bar-part, .field, .problem, .warning, button.pf-v6-c-button";

const canvas = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
const known = new Map();

/* Red, green, blue and alpha of any colour of CSS. */
function rgba(text) {
    if (!known.has(text)) {
        canvas.clearRect(0, 0, 1, 1);
        canvas.fillStyle = text;
        canvas.fillRect(0, 0, 1, 1);
        const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
        known.set(text, [r, g, b, a / 255]);
    }
    return known.get(text);
}

function over([r, g, b, a], below) {
    return [r, g, b].map((c, i) => c * a + below[i] * (1 - a));
}

function ground(element) {
    if (!element)
        return [255, 255, 255];
    const colour = rgba(getComputedStyle(element).backgroundColor);
    return colour[3] === 1 ? colour : over(colour, ground(element.parentElement));
}

function luminance(colour) {
    const [r, g, b] = colour.map(c => c / 255).map(c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

const worst = new Map();

function note(kind, element, text, below) {
    const colour = over(rgba(text), below);
    const [dark, light] = [luminance(colour), luminance(below)].sort((a, b) => a - b);
    const what = `${element.localName}.${element.className}`, ratio = (light + 0.05) / (dark + 0.05);
    if (ratio < (worst.get(kind + what)?.ratio ?? Infinity))
        worst.set(kind + what, { kind, what, ratio, colours: `${colour.map(Math.round)} on ${below.slice(0, 3).map(Math.round)}` });
}

for (const element of document.body.querySelectorAll("*")) {
    if (!element.checkVisibility() || element.matches(":disabled, :disabled *"))
        continue;
    const style = getComputedStyle(element);
    if (element.matches("input, select, textarea") || [...element.childNodes].some(child => child.nodeType === Node.TEXT_NODE && child.data.trim()))
        note("text", element, style.color, ground(element));
    if (element.placeholder)
        note("text", element, getComputedStyle(element, "::placeholder").color, ground(element));
    if (!element.matches(EDGES))
        continue;
    if (element.matches(".bar-part"))
        note("edge", element, style.backgroundColor, ground(element.parentElement));
    for (const edges of [style, getComputedStyle(element, "::after")])
        for (const [colour, width] of [[edges.borderTopColor, edges.borderTopWidth], [edges.borderLeftColor, edges.borderLeftWidth],
            [edges.outlineColor, edges.outlineStyle === "none" ? "0" : edges.outlineWidth]])
            if (parseFloat(width) > 0 && rgba(colour)[3] > 0)
                for (const side of [element.parentElement, ...element.matches(".held.cell, .pf-m-primary, .pf-m-danger") ? [] : [element]])
                    note("edge", element, colour, ground(side));
}
return [...worst.values()].sort((a, b) => a.ratio - b.ratio);
