// A figure by two factors: a table whose cells are darker with a larger figure.
import { useScheme } from "../charts/plot";
import { isDark } from "../places";
import type { Matrix } from "./types";

/** From the least to the largest figure, those of the SVG pictures (crates/cli/templates/plot.css); from the fifth on the text on it changes its colour. */
const LIGHT = ["#eef4fa", "#d3e4f3", "#a9cde5", "#73b2d8", "#2f76b0", "#15578f", "#08306b"];
const DARK = ["#1b2530", "#1c3650", "#1d4a72", "#226199", "#69abdb", "#a3cdee", "#dceefc"];
const CHANGES_AT = 4;

function shade(share: number | null): { background: string; color: string } | undefined {
    if (share === null) return undefined;
    const at = Math.min(LIGHT.length - 1, Math.floor(share * LIGHT.length));
    const isBright = isDark() === at >= CHANGES_AT;
    return { background: (isDark() ? DARK : LIGHT)[at] ?? "", color: isBright ? "#0b1219" : "#fff" };
}

export function MatrixTable({ map, shades }: { map: Matrix; shades: (number | null)[][] }) {
    useScheme();
    return (
        <figure class="matrix wide" tabIndex={0}>
            <figcaption>{map.title}</figcaption>
            <table>
                <thead>
                    <tr>
                        <th scope="col">
                            <small>
                                {map.rows_title} / {map.columns_title}
                            </small>
                        </th>
                        {map.columns.map((column) => (
                            <th key={column} scope="col">
                                {column}
                            </th>
                        ))}
                    </tr>
                </thead>
                <tbody>
                    {map.rows.map((name, row) => (
                        <tr key={name}>
                            <th scope="row">{name}</th>
                            {map.columns.map((column, at) => {
                                const cell = map.cells[row]?.[at];
                                return (
                                    <td key={column} style={shade(shades[row]?.[at] ?? null)}>
                                        {cell?.text}
                                        {cell?.note && <small>{cell.note}</small>}
                                    </td>
                                );
                            })}
                        </tr>
                    ))}
                </tbody>
            </table>
            <p class="facts">
                {map.ends[0]} to {map.ends[1]}: lighter to darker
            </p>
        </figure>
    );
}
