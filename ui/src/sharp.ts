// Charts in a file are also printed: they are drawn with at least twice the pixels of a plain screen. uPlot reads this when it is loaded, so this comes first.
const PIXELS_MIN = 2;

if (document.getElementById("report") && devicePixelRatio < PIXELS_MIN) {
    Object.defineProperty(window, "devicePixelRatio", { value: PIXELS_MIN, configurable: true });
}
