/* data/obj_quick.h - the usual lines of an OBJ file, fast. Whatever is unusual in a line gets NULL or false and is left to the
 * general way of obj.c, which alone knows of faults. At least QUICK_ROOM bytes must be readable from p on. */
#ifndef DATA_OBJ_QUICK_H
#define DATA_OBJ_QUICK_H

#include <stdbool.h>
#include <stdint.h>

enum { QUICK_ROOM = 128 };

/* A line of up to 63 bytes without comment, joined lines or control characters: its newline; tokens: words behind the first. */
const char *quick_line(const char *p, uint64_t *tokens);
/* Three decimal numbers without exponent, a blank between them, then the line's end; gives that. Exact as number_read(); offset
 * is taken off before they become floats. */
const char *quick_three(const char *p, const double offset[3], float to[3]);
/* Three indices from 1 up to `there`, a blank between them, then the line's end; to[] counts from 0. */
const char *quick_triangle(const char *p, uint64_t there, uint32_t to[3]);

#endif
