module llmsim

go 1.26
