// Names for screen readers where the theme and the gallery show only a sign or a picture.
for (const summary of document.querySelectorAll("li > details > summary")) {
  const link = summary.closest("li").querySelector("a");
  summary.setAttribute("aria-label", `Pages below ${link ? link.textContent.trim() : "this one"}`);
}
for (const link of document.querySelectorAll(".sphx-glr-thumbcontainer a")) link.setAttribute("aria-label", link.textContent.trim());
