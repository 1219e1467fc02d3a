# cmake -DOUTPUT=file.cc -DRELEASE=... -DHEADERS=a.h;b.h -P module_build.cmake: what program and module of one build have in common.
set(checksums "")
foreach(header ${HEADERS})
  file(SHA256 ${header} checksum)
  string(APPEND checksums ${checksum})
endforeach()
string(SHA256 checksum "${checksums}")
string(SUBSTRING ${checksum} 0 12 checksum)
file(WRITE ${OUTPUT} "#include \"trainer/backend/cuda/module.h\"
const char* const trainer::kCudaModuleBuild = \"${RELEASE}, ${checksum}\";
")
