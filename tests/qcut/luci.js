// The page of LuCI with stand-ins for LuCI's modules: node luci.js STATUS_JS STATUS_JSON
// Prints the text of the page for a status of now, for an old one and for none.
'use strict';
const { readFileSync } = require('node:fs');
const [, , page, statusFile] = process.argv;
const status = JSON.parse(readFileSync(statusFile, 'utf8'));

const E = (name, attributes, children) => {
	if (Array.isArray(attributes))
		children = attributes;
	const parts = [...children || []];
	return { name, parts, replaceChildren(...now) { this.parts = now; } };
};
const text = node => node == null ? '' : typeof node != 'object' ? `${node} ` : node.parts.map(text).join('');

async function shown(answer) {
	const fs = { read: path => path == '/var/run/airmile/status-wan.json' ? answer() : Promise.reject(new Error(path)) };
	const uci = { load: () => Promise.resolve(), sections: () => [{ '.name': 'wan' }] };
	const view = { extend: methods => methods };
	const body = readFileSync(page, 'utf8').replace(/^'require .*$/gm, '');
	const made = new Function('view', 'fs', 'poll', 'uci', 'E', '_', body)(view, fs, { add() {} }, uci, E, word => word);
	await made.load();
	return text(await made.render());
}

(async () => {
	const now = Date.now() / 1e3;
	for (const at_s of [now, now - 60])
		console.log(await shown(() => Promise.resolve(JSON.stringify({ ...status, at_s }))));
	console.log(await shown(() => Promise.reject(new Error('no file'))));
})();
