/* A small program file with everything that is read of one: functions, inlined ones, a table to unwind by, names, debugging information.
   Made by make.sh, which says how. */
typedef unsigned long word;

static volatile word sink;

static inline __attribute__((always_inline)) word innermost(word value) { return value * 31 + sink; }

static inline __attribute__((always_inline)) word inner(word value) {
    word sum = 0;
    for (word step = 0; step < value; step++)
        sum += innermost(step);
    return sum;
}

__attribute__((noinline)) static word middle(word value) {
    word row[16];
    for (word place = 0; place < 16; place++)
        row[place] = inner(value + place);
    sink = row[value & 15];
    return row[(value + 1) & 15];
}

__attribute__((noinline)) word outer(word value) { return value ? middle(outer(value - 1)) + inner(value) : sink; }

word _ZN5small6mangledEm(word value) { return outer(value) + middle(value); }

void _start(void) {
    sink = outer(3);
    for (;;)
        sink = _ZN5small6mangledEm(sink);
}
