/* x86-64 kernel code made callable: an ELF object placed and relocated by the runtime itself, or a
 * shared object given to the system's loader. Code is mapped read-execute, data read-only. */
#ifndef FRT_IMAGE_H
#define FRT_IMAGE_H

#include "code/module.h"

typedef struct Image Image;

/* `module` (a CPU one) must outlive the image. FRT_E_CODE names what it cannot take. */
frt_status image_load(const frt_module *module, Image **image, frt_error *err);
void image_free(Image *image);

/* Address of a function. FRT_E_CODE if the code has none of this name. */
frt_status image_find(const Image *image, const char *symbol, void **address, frt_error *err);

#endif
