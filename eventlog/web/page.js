// A little comfort: parts marked data-live renew themselves and say when nobody answers any more, what takes long
// says that it is loading, j and k walk the rows, / goes to the search.
"use strict";

const PAUSE = 2000;
const SLOW = 300;
let heard = new Date();

function answered(yes) {
  const there = document.querySelector(".banner");
  if (yes) {
    heard = new Date();
    there?.remove();
  } else if (!there) {
    const banner = document.createElement("p");
    banner.className = "banner";
    banner.setAttribute("role", "alert");
    banner.textContent = `No answer since ${heard.toLocaleTimeString()}: what stands here is of then.`;
    document.querySelector("header").before(banner);
  }
}

function busy(event) {
  if (event.defaultPrevented || event.target.closest?.("a[href^='#']")) return;
  setTimeout(() => document.body.setAttribute("aria-busy", "true"), SLOW);
}

async function renew() {
  const parts = [...document.querySelectorAll("[data-live]")].filter(
    (part) => !part.contains(document.activeElement),
  );
  if (parts.length && !document.hidden) {
    try {
      const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
      answered(true);
      const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
      document.title = fresh.title;
      const icons = [document, fresh].map((page) => page.querySelector("link[rel=icon]"));
      if (icons.every(Boolean) && icons[0].href !== icons[1].href) icons[0].href = icons[1].href;
      const [here, there] = [document, fresh].map((page) => page.querySelector("main"));
      if (there && parts.some((part) => !fresh.getElementById(part.id))) {
        if (!here.contains(document.activeElement) || document.activeElement === here) here.replaceWith(there);
      } else if (answer.ok) {
        for (const part of parts) {
          const other = fresh.getElementById(part.id);
          if (other.innerHTML !== part.innerHTML) part.replaceChildren(...other.childNodes);
        }
      }
    } catch {
      answered(false); // what stands here stays, and the next try may find it back
    }
  }
  setTimeout(renew, PAUSE);
}

function walk(step) {
  const links = [...document.querySelectorAll("tbody tr")].map((row) => row.querySelector("a")).filter(Boolean);
  const row = document.activeElement?.closest("tbody tr");
  const at = links.findIndex((link) => link.closest("tr") === row);
  links[Math.min(Math.max(at + step, 0), links.length - 1)]?.focus();
}

const KEYS = {
  j: () => walk(1),
  k: () => walk(-1),
  "/": () => document.querySelector("input[type=search]")?.focus(),
  Escape: () => document.activeElement?.blur(),
};

document.addEventListener("keydown", (event) => {
  const typing = event.target.matches?.("input, select, textarea") && event.key !== "Escape";
  if (typing || event.ctrlKey || event.metaKey || event.altKey || !KEYS[event.key]) return;
  event.preventDefault();
  KEYS[event.key]();
});

document.addEventListener("submit", busy);
document.addEventListener("click", (event) => event.target.closest?.("a[href]") && !event.ctrlKey && !event.metaKey && busy(event));
addEventListener("pageshow", () => document.body.removeAttribute("aria-busy"));

for (const form of document.querySelectorAll("form.filter[role=search]")) {
  form.addEventListener("change", () => form.requestSubmit());
}
setTimeout(renew, PAUSE);
