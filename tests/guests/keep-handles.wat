;; Takes handle after handle and gives none back.
(func $run (param $target i32) (result i32)
  (loop $more
    (call $primary (local.get $target) (i32.const 512))
    (br $more))
  unreachable)
