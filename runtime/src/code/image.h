/* Makes x86-64 kernel code callable. The runtime itself places and relocates an ELF object, and
 * passes a shared object to the system's loader. Code is mapped read-execute, data read-only. */
#ifndef FRT_IMAGE_H
#define FRT_IMAGE_H

#include "code/module.h"

typedef struct Image Image;

/* `module` must be a CPU module and outlive the image. FRT_E_CODE names the unsupported part. */
frt_status image_load(const frt_module *module, Image **image, frt_error *err);
void image_free(Image *image);

/* The address of a function. FRT_E_CODE if the code has no function of this name. */
frt_status image_find(const Image *image, const char *symbol, void **address, frt_error *err);

#endif
