// SPDX-License-Identifier: Apache-2.0

#include "trainer/backend/cuda/norm_shape.h"

#include "trainer/backend/cuda/layout.h"
#include "trainer/backend/cuda/runtime.h"

namespace trainer {

NormShape NormShapeOf(const TensorDesc& images) {
  const Places places = PlacesOf(images);
  NormShape shape;
  shape.pixels = places.samples * places.height * places.width;
  shape.channels = static_cast<int>(places.used);
  shape.padded = static_cast<int>(places.channels);
  shape.dtype = images.dtype;
  shape.multiprocessors = Multiprocessors();
  return shape;
}

}  // namespace trainer
