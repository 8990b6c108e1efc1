/* Hexadecimal digits, of either case. */
#ifndef FRT_HEX_H
#define FRT_HEX_H

/* The digit's value; -1 if the character is none. */
static inline int hex_digit(char c) {
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    if (c >= 'A' && c <= 'F') {
        return c - 'A' + 10;
    }
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

#endif
