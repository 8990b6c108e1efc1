/* fusec and soak in one program, for machines without LLVM: two copies of LLVM would be twice the
 * size. Does what its name says (a link called `fusec` or `soak`), or what its first argument says.
 */
#include <stdio.h>
#include <string.h>

int fusec_main(int argc, char **argv);
int soak_main(int argc, char **argv);

int main(int argc, char **argv) {
    const char *name = argc > 0 ? argv[0] : "", *slash = strrchr(name, '/');
    if (slash) name = slash + 1;
    if (strcmp(name, "fusec") && strcmp(name, "soak") && argc > 1) name = *++argv, argc--;
    if (strcmp(name, "fusec") == 0) return fusec_main(argc, argv);
    if (strcmp(name, "soak") == 0) return soak_main(argc, argv);
    fprintf(stderr, "kit: call it as `kit fusec ...` or `kit soak ...`\n");
    return 2;
}
