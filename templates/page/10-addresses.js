"use strict";
// Addresses. IPv4 addresses are numbers, IPv6 addresses are BigInts: a number has 53 bits.

const BITS = { 4: 32, 6: 128 };

/** Read an address; return { family, value } or null. */
function parseAddress(text) {
  if (/^\d{1,3}(\.\d{1,3}){3}$/.test(text)) {
    const octets = text.split(".").map(Number);
    if (octets.some((octet) => octet > 255)) return null;
    return { family: 4, value: octets.reduce((sum, octet) => sum * 256 + octet, 0) };
  }
  if (!/^[0-9a-f:]+$/i.test(text) || !text.includes(":") || text.includes(":::")) return null;
  const halves = text.split("::");
  if (halves.length > 2) return null;
  const [head, tail] = halves.map((half) => (half ? half.split(":") : []));
  const missing = 8 - head.length - (tail || []).length;
  if (halves.length === 2 ? missing < 1 : missing !== 0) return null;
  const groups = [...head, ...Array(Math.max(missing, 0)).fill("0"), ...(tail || [])];
  if (groups.some((group) => !/^[0-9a-f]{1,4}$/i.test(group))) return null;
  return { family: 6, value: groups.reduce((sum, group) => (sum << 16n) | BigInt(`0x${group}`), 0n) };
}

/** Read a CIDR; return { family, first, prefix } or null. Host bits are dropped: people paste addresses. */
function parseCidr(text) {
  const [address, length, more] = text.split("/");
  const found = parseAddress(address);
  if (!found || more !== undefined) return null;
  const bits = BITS[found.family];
  const prefix = length === undefined ? bits : Number(length);
  if (length === "" || !Number.isInteger(prefix) || prefix < 0 || prefix > bits) return null;
  if (found.family === 4) {
    const size = 2 ** (32 - prefix);
    return { family: 4, first: Math.floor(found.value / size) * size, prefix };
  }
  const low = BigInt(128 - prefix);
  return { family: 6, first: (found.value >> low) << low, prefix };
}

/** Write an address: dotted decimal, or RFC 5952. */
function addressText(family, value) {
  if (family === 4) return [24, 16, 8, 0].map((shift) => Math.floor(value / 2 ** shift) % 256).join(".");
  const groups = [];
  for (let shift = 112n; shift >= 0n; shift -= 16n) groups.push(Number((value >> shift) & 0xffffn));
  let best = { start: -1, length: 1 };
  for (let start = 0; start < 8; start += 1) {
    let end = start;
    while (end < 8 && groups[end] === 0) end += 1;
    if (end - start > best.length) best = { start, length: end - start };
  }
  const hex = groups.map((group) => group.toString(16));
  if (best.start < 0) return hex.join(":");
  return `${hex.slice(0, best.start).join(":")}::${hex.slice(best.start + best.length).join(":")}`;
}

/** Write a block. */
function cidrText(block) {
  return `${addressText(block.family, block.first)}/${block.prefix}`;
}

/** The number of addresses of a block, of the type of its addresses. */
function sizeOf(block) {
  return block.family === 4 ? 2 ** (32 - block.prefix) : 1n << BigInt(128 - block.prefix);
}

/** The last address of a block. */
function lastOf(block) {
  return block.family === 4 ? block.first + sizeOf(block) - 1 : block.first + sizeOf(block) - 1n;
}

/** Whether two blocks share an address. */
function overlap(one, other) {
  return one.family === other.family && one.first <= lastOf(other) && other.first <= lastOf(one);
}

/** Write a number of addresses: with commas, large ones as powers of two. */
function countText(number) {
  if (number < 1e9) return Math.round(number).toLocaleString("en-US");
  const power = Math.log2(number);
  return Number.isInteger(power) ? `2^${power}` : `2^${power.toFixed(1)}`;
}

/** "1 block", "2 blocks". */
function plural(number, noun) {
  return `${countText(number)} ${noun}${number === 1 ? "" : "s"}`;
}
