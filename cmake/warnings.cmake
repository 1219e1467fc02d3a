# Warnings are errors, for our own sources only: the headers of libraries come in as SYSTEM.
add_compile_options(-Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual -Wcast-qual
                    -Wformat=2 -Werror)
