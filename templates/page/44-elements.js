// Elements of the page: everything that a script adds is made here, and text is never read as HTML.

/** Make an element. Children are elements or text; text is never read as HTML. */
function el(tag, attributes, ...children) {
  const made = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (key === "class") made.className = value;
    else if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (value !== undefined && value !== false) made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...children.filter((child) => child !== undefined && child !== null));
  return made;
}

const MOST_VALUES = 400; // of a label that is offered as colour
const MOST_LABELS = 100;

/** A word that does something when it is clicked. */
function link(onclick, text) {
  return el("button", { type: "button", class: "link", onclick }, text);
}

/** The addresses of some pools by what they are used for, of the family of which the most is in use. */
function fullest(pools) {
  const sums = [4, 6].map((family) => {
    const sum = { total: 0, held: 0, quarantined: 0, reserved: 0, free: 0, released: 0 };
    for (const pool of pools)
      if (pool.family === family) for (const name of Object.keys(sum)) sum[name] += pool.addresses[name];
    return sum;
  });
  return shareOf(sums[1]) > shareOf(sums[0]) ? sums[1] : sums[0];
}

function shareOf(use) {
  return use.total ? (use.held + use.quarantined + use.reserved) / use.total : 0;
}

/** A bar with its percent. */
function meter(use) {
  const share = shareOf(use);
  const bar = el(
    "span",
    { class: "meter" },
    el("span", { class: `fill ${share > 0.95 ? "full" : share > 0.8 ? "high" : ""}` }),
  );
  bar.firstChild.style.width = `${Math.min(share * 100, 100)}%`;
  return el("span", { class: "metered" }, bar, shareText(use));
}
